"""Debiasing of frozen encoders: an embedder that wraps an embedder."""
