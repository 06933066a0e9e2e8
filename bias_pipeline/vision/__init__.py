"""Finds, reads and edits pictures."""
