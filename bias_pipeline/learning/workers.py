"""Processes that train: how they are started and ended."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import (
    active_children,
    get_all_start_methods,
    get_context,
    get_start_method,
    set_start_method,
)
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.util import Finalize

from bias_pipeline.io import signals


def context() -> SpawnContext:
    """A context that starts fresh interpreters, as a fork with threads or a GPU may hang.

    A fresh interpreter inherits the name of its parent's start method, and that of joblib's workers
    ("loky") would be unknown to it.
    """
    if get_start_method(allow_none=True) not in (None, *get_all_start_methods()):
        set_start_method("spawn", force=True)
    # Without this a worker of joblib would wait, at its end, for processes that wait for work.
    Finalize(None, kill_workers, exitpriority=1)
    return get_context("spawn")


@lru_cache(maxsize=1)
def pool(processes: int) -> ProcessPoolExecutor:
    """Workers that stay for the next call, since importing PyTorch takes seconds."""
    return ProcessPoolExecutor(processes, context(), initializer=prepare_worker)


def kill_workers() -> None:
    """Kill trainings that are no longer needed, as the program would wait for them at its end.

    They are killed, since Lightning catches SIGTERM while it trains. A launcher's own processes
    (joblib's) are left running.
    """
    for child in active_children():
        if isinstance(child, SpawnProcess):
            child.kill()
    pool.cache_clear()


def prepare_worker() -> None:
    """Make a worker ignore interrupts and end with its parent."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    # Lightning replaces the default handler by one that continues training, but not this one.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    signals.end_with_parent()
