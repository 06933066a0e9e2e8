"""Records requests to stop, so that no library can lose them.

Ctrl-C, SIGTERM, SIGHUP (the terminal was closed) and, under Slurm, USR2 are requests. A signal
raises an exception wherever Python happens to be. A library may swallow the exception (as in a
finaliser), or turn it into another error (as in a parser that cleans up). The record of the request
remains, and decides the exit code.
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
    """A request to end this process, other than Ctrl-C."""


def listen() -> None:
    """Handle signals from now on; forget earlier requests."""
    global _requested
    _requested = None
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell may ignore it
        signal.signal(signal.SIGINT, _stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup makes processes ignore it
        signal.signal(signal.SIGHUP, _terminate)
    if _under_slurm():  # Slurm announces the end of a job's time with USR2
        signal.signal(signal.SIGUSR2, _stop)


def ignore_signals() -> None:
    """Ignore signals from now on, when the work is done and the exit code is known."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def stop_is_requested() -> bool:
    return _requested is not None


def stop_if_requested() -> None:
    """Raise the exception of a request again if it got lost; called between two jobs."""
    if stop_is_requested():
        raise Stopped


def end_with_parent() -> None:
    """End this worker process as soon as the process that started it has ended in any way."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        while parent is not None and os.getppid() == parent.pid:
            time.sleep(WATCH_S)
        os._exit(TERMINATED)

    threading.Thread(target=watch, daemon=True).start()


def exit_code() -> int:
    """The exit code of a stopped process; under Slurm, the exit code that requeues the job.

    If Ctrl-C comes during an ``exec``, such as the definition of a dataclass, CPython counts the
    signal as unhandled. CPython then kills itself at the end instead of exiting with a code.
    Another ``exec`` clears this state.
    """
    exec("")  # noqa: S102 - see above
    if _requested in (None, signal.SIGINT):  # None: another handler got the Ctrl-C
        return INTERRUPTED
    return REQUEUE if _under_slurm() else TERMINATED


def _under_slurm() -> bool:
    return "SLURM_JOB_ID" in os.environ


def _terminate(number: int, _: object) -> None:
    """Stop in the way that SIGTERM does; libraries such as web servers replace its handler."""
    signal.signal(number, signal.SIG_IGN)  # the shell and the system may both send this signal
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(number: int, _: object) -> None:
    global _requested
    _requested = number
    raise KeyboardInterrupt if number == signal.SIGINT else Stopped
