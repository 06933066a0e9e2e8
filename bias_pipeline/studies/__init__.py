"""Studies of metrics: responses to planted bias, power and sensitivity."""
