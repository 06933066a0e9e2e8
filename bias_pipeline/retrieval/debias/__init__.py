"""Edits vectors so that they no longer reveal groups."""
