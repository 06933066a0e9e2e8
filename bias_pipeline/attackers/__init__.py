"""Attackers: models that guess an attribute (or tasks) from captions, and what they predict."""
