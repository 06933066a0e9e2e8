"""Integrates scores into other programs: pytest, training, lmms-eval, Inspect AI, evaluate."""
