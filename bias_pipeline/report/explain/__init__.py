"""Finds the words that leak the attribute to attackers."""
