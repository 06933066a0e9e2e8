"""Scores inside other programs: pytest, training loops, lmms-eval, Hugging Face's evaluate."""
