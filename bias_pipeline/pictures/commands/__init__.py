"""Commands that use captioners and photos."""
