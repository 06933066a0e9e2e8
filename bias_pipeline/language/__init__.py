"""Metrics and transforms that need language models or word vectors."""
