"""The data to be scored: captions, groups, splits and predictions."""
