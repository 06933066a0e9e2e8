"""FIBER."""
