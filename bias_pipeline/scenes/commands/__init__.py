"""Commands that use the built-in data set."""
