"""The pages of rate and browse."""
