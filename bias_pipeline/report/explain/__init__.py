"""Which words leak the attribute to attackers."""
