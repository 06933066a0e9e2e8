"""Captioners as attackers: they read picture, caption and prompt, and name the group."""
