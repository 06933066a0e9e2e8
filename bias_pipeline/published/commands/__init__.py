"""Commands that convert or download published files."""
