"""A study of descriptions: see README.md."""
