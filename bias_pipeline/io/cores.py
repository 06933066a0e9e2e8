"""How many cores this process may use."""

from __future__ import annotations

import os


def n_cores() -> int:
    """The cores that this process may use, which under Slurm are fewer than the machine has.

    Slurm does not always keep it from using more, so that its word comes first.
    """
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        if os.environ.get(name, "").isdecimal():
            return max(int(os.environ[name]), 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
