"""Pictures: where they are, and how they are read."""
