"""Studies of metrics: their behaviour when the truth is known, power, and sensitivity."""
