"""Turns a command line into results: composes and checks cells, and runs them, also on Slurm."""
