"""Lists of metrics, their cards, costs and sources."""
