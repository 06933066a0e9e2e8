"""Studies: one folder each, with its command, its rows and a comparison with published numbers."""
