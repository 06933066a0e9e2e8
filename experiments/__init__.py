"""Studies: a folder each, with its command, its rows and what they say of published numbers."""
