"""Finds, checks, loads and runs published networks."""
