"""Metrics of Hugging Face's ``evaluate``: a folder each, for ``evaluate.load(FOLDER)``."""
