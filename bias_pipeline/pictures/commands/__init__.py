"""Commands on captioners and photos."""
