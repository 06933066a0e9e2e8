"""Models that write captions of pictures."""
