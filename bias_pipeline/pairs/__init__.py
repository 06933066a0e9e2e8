"""Compares captions of pictures that differ only in a person's group."""
