"""Analyses that are no metric: what a choice of words, alignment or scoring does."""
