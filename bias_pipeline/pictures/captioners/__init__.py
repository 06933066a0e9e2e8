"""Captioners that read a picture and a prompt, and their networks."""
