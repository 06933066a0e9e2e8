"""Captioners fitted to a data set's pictures and captions."""
