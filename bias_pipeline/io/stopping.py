"""A request to stop (Ctrl-C, SIGTERM, Slurm's warning): remembered, so no library can lose it.

The exception that a signal raises appears wherever Python happens to be. A library may swallow it
(in a comparison that a C function makes, in a finaliser) or turn it into an error of its own (a
parser whose clean-up meets a half-built state); the request stands all the same, and the exit code
follows the request.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

REQUEUE, INTERRUPTED, TERMINATED = 75, 130, 143
WATCH_S = 0.5

_requested: int | None = None


class Stopped(BaseException):
    """Somebody asked this process to end, other than by Ctrl-C."""


def listen() -> None:
    """Heed signals from now on; earlier requests are forgotten."""
    global _requested
    _requested = None
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell may ignore it
        signal.signal(signal.SIGINT, _stop)
    if _under_slurm():  # Slurm announces the end of a job's time with USR2
        signal.signal(signal.SIGUSR2, _stop)


def ignore_signals() -> None:
    """Heed none from now on: the work is done and the exit code known."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def requested() -> bool:
    """Whether somebody asked."""
    return _requested is not None


def stop_if_requested() -> None:
    """Between two jobs: end, if somebody asked and the exception got lost.

    Raises:
        Stopped: if somebody asked.
    """
    if requested():
        raise Stopped


def end_with_parent() -> None:
    """In a worker: end when the process that started it has ended, however that was."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        while parent is not None and os.getppid() == parent.pid:
            time.sleep(WATCH_S)
        os._exit(TERMINATED)

    threading.Thread(target=watch, daemon=True).start()


def exit_code() -> int:
    """What a stopped process ends with: under Slurm, a request to be queued again.

    CPython takes a Ctrl-C that met an ``exec``, such as that of a dataclass being made, for
    unhandled whoever handles it, and kills itself at the end instead of exiting with a code; the
    next ``exec`` makes it forget.
    """
    exec("")  # noqa: S102 - see above
    if _requested in (None, signal.SIGINT):  # None: somebody else's handler saw Ctrl-C
        return INTERRUPTED
    return REQUEUE if _under_slurm() else TERMINATED


def _under_slurm() -> bool:
    return "SLURM_JOB_ID" in os.environ


def _stop(number: int, _: object) -> None:
    global _requested
    _requested = number
    raise KeyboardInterrupt if number == signal.SIGINT else Stopped
