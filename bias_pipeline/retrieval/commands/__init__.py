"""Commands that use models of pictures and texts."""
