"""Encoders of captions, and attackers that guess the group from an encoder's output."""
