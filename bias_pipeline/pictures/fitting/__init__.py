"""Captioners trained to write."""
