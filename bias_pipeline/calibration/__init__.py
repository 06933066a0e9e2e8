"""What a metric says of known truth."""
