"""Finds, checks, loads and runs published neural networks."""
