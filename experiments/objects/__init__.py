"""A study of invented objects: see README.md."""
