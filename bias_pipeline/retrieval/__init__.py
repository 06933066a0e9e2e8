"""Models of pictures and texts, their debiasing, and how fair what they retrieve is."""
