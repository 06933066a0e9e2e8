"""Connects the scores with other programs: pytest, training, lmms-eval, Inspect AI, evaluate."""
