"""Processes that train: what each needs at its start, and how all are ended."""

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

from bias_pipeline.io import stopping


def context() -> SpawnContext:
    """Fresh interpreters: a fork of one that runs threads or has a GPU may hang.

    A fresh interpreter takes over the name of its parent's default way to start processes, and a
    worker of joblib has one ("loky") that it would not know.
    """
    if get_start_method(allow_none=True) not in (None, *get_all_start_methods()):
        set_start_method("spawn", force=True)
    # Such a worker would wait, at its end, for processes that wait for work.
    Finalize(None, kill_workers, exitpriority=1)
    return get_context("spawn")


@lru_cache(maxsize=1)
def pool(processes: int) -> ProcessPoolExecutor:
    """Workers that stay for the next call: importing PyTorch takes them seconds."""
    return ProcessPoolExecutor(processes, context(), initializer=prepare_worker)


def kill_workers() -> None:
    """End trainings nobody waits for: leaving would otherwise wait for them.

    They are killed, since Lightning catches a plain request to end while it trains. A launcher's
    own processes (joblib's) are not ours to end.
    """
    for child in active_children():
        if isinstance(child, SpawnProcess):
            child.kill()
    pool.cache_clear()


def prepare_worker() -> None:
    """No interrupts of its own, and no life after the parent's."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    # A handler of ours: Lightning puts its own, which goes on training, in place of the default.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    stopping.end_with_parent()
