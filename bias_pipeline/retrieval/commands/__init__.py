"""Commands on models of pictures and texts."""
