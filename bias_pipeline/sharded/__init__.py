"""A large job in tasks that never meet: shares, blocks, and all of it in one file at the end."""
