"""Frozen encoders without what tells groups apart: an embedder around an embedder."""
