"""Encoders, and attackers that guess the group from what an encoder makes of a caption."""
