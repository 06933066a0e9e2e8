"""Commands on published files."""
