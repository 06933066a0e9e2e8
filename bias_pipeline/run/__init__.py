"""Turns a command line into finished cells: composing, checking, sweeps, Slurm, loggers."""
