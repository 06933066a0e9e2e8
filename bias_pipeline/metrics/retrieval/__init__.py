"""Whom queries retrieve."""
