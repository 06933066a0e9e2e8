"""Reads files on disk as a corpus, together with its pictures."""
