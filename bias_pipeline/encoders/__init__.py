"""Encoders: captions to what an attacker learns from."""
