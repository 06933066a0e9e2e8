"""Which words give the attribute away to attackers."""
