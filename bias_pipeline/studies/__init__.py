"""Studies of metrics, on their behaviour when the truth is known, on power and on sensitivity."""
