"""Metrics that count words and labels."""
