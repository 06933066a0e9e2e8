"""What is scored: captions, groups, splits, predictions."""
