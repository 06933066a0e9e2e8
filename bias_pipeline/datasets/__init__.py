"""Data sets: files on disk to a corpus, one file each."""
