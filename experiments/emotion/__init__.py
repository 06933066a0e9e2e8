"""A study of emotion: see README.md."""
