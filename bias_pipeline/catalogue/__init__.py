"""What there is: metrics, their cards and their sources."""
