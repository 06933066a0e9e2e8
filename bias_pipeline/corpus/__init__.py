"""The data that are scored: captions, groups, splits, predictions."""
