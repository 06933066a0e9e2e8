"""Published vision networks, by which captioners see."""
