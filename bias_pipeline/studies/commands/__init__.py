"""Commands of studies."""
