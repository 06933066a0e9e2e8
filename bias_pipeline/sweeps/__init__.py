"""Sweeps of many cells: jobs, helpers, Slurm."""
