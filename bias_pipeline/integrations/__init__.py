"""Scores inside other programs: pytest, training, lmms-eval, Inspect AI, evaluate."""
