"""Captioners as attackers: from picture, caption and prompt they predict the group."""
