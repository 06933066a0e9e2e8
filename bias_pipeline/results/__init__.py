"""Scores together with how they were made, and the folders that store scores."""
