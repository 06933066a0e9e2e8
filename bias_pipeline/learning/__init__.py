"""Training with Lightning: the loop, processes that share it, and how it survives a kill."""
