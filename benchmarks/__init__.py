"""What it costs: speed and memory, measured by the commands that users type."""
