"""Metrics that train attackers."""
