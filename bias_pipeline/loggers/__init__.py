"""Where results go besides the run folder: CSV, W&B."""
