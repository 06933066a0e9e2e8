"""Computes how certain a number is and whether two numbers differ."""
