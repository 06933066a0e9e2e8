"""How many cores and how much memory this process may use."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path


def n_cores() -> int:
    """The cores that this process may use, which under Slurm are fewer than the machine has.

    Slurm does not always enforce its limit, so its variables come first.
    """
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        if os.environ.get(name, "").isdecimal():
            return max(int(os.environ[name]), 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def n_threads() -> int:
    """The threads to read and compute with: ``OMP_NUM_THREADS``, by default one a core."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return int(setting) if setting.isdecimal() and int(setting) else n_cores()


def free_memory() -> int | None:
    """Bytes available without swapping, None if the system does not report them."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    lines = (line.split() for line in text.splitlines())
    return next((1024 * int(words[1]) for words in lines if words[0] == "MemAvailable:"), None)


def own_memory() -> int:
    """The peak memory of this process so far, in bytes."""
    import resource  # not on Windows

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def return_freed_memory() -> None:
    """Return memory that was freed to the system; glibc retains arrays of up to 32 MB."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
