"""Attackers of all seeds in one pass over stacked weights."""
