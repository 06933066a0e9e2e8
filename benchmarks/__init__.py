"""Speed and memory of the commands that users type."""
