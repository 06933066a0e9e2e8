"""Metrics of language itself."""
