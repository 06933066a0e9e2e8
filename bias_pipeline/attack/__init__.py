"""Encoders turn captions into vectors. Attackers guess the group from the vectors."""
