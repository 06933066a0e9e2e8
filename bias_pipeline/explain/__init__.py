"""Which words give a group away."""
