"""Functions for people: rating, browsing, and pictures in which nobody can tell the group."""
