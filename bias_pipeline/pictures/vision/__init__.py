"""Published vision networks, whose features captioners use."""
