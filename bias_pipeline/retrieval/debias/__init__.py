"""Edits vectors so that they no longer tell groups apart."""
