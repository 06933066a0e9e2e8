"""Runs models over many items, in resumable shares and blocks."""
