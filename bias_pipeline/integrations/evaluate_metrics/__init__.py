"""Metrics for Hugging Face's ``evaluate``; each has a folder for ``evaluate.load(FOLDER)``."""
