"""Scores with their origin, and the folders that keep them."""
