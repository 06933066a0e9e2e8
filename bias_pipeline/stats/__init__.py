"""Statistics: what is known of a number, and whether two numbers differ."""
