"""Many cells: sweep, job, Slurm."""
