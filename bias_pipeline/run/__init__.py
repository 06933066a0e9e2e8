"""From a command line to finished cells: composing, checking, sweeps, Slurm, loggers."""
