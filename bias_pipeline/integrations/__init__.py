"""Where people already are: pytest, and training loops that log each epoch."""
