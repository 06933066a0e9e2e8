"""GRIT's networks."""
