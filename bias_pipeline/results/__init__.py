"""Scores with their origin, and the folders that store them."""
