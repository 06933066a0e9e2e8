"""Analyses of results and of captions, besides the metrics."""
