"""Edits of vectors that remove what tells groups apart."""
