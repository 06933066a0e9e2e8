"""Published vision networks, through which captioners see."""
