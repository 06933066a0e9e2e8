"""Commands for human raters and readers."""
