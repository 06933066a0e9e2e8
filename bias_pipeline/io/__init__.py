"""Files, caches, hashes, progress bars, signals."""
