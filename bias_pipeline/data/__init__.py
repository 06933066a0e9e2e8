"""Reads files on disk as a corpus, with the pictures of the corpus."""
