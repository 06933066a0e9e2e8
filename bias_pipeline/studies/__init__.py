"""How metrics behave on known truth, the papers' claims, power and sensitivity."""
