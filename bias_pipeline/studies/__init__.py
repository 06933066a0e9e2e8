"""Studies of metrics: how they respond to planted bias, their power and their sensitivity."""
