"""Files, caches, hashes, progress, signals."""
