"""Handles files, caches, hashes, progress bars, signals and the terminal."""
