"""The web pages of the commands ``rate`` and ``browse``."""
