"""Metrics for Hugging Face's ``evaluate``. Each has a folder, for ``evaluate.load(FOLDER)``."""
