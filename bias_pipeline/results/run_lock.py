"""Claims runs by files; the owner of a claim renews its file as long as the owner lives."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path

log = logging.getLogger(__name__)

HEARTBEAT_S = 5.0
STALE_S = 60.0
LOGGED_S = 2.0  # a longer wait is logged
_OWNER = re.compile(r"([\w.-]{1,255}) (\d{1,9})")


@contextmanager
def hold_claim(path: Path) -> Iterator[None]:
    """Hold a claim; waits, with a warning, while another living process holds it.

    A claim is taken over if its owner is dead, or if the claim was not renewed for ``STALE_S``. The
    age comes from the claim's time stamp or, since clocks of hosts differ, from how long this
    process has seen no change.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = _Waiting(path)
    while not _create(path):
        if waiting.is_stale():
            _remove_stale(path)
        time.sleep(0.05)
    finished = threading.Event()
    beat = threading.Thread(target=_renew, args=(path, finished), daemon=True)
    beat.start()
    try:
        yield
    finally:
        finished.set()
        beat.join()
        path.unlink(missing_ok=True)


def is_claimed(path: Path) -> bool:
    """Whether a process that seems alive holds a claim."""
    return os.path.lexists(path) and not _Waiting(path).is_stale()


class _Waiting:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.started = self.stamp_changed_s = time.monotonic()
        self.stamp: object = None
        self.warned = False

    def is_stale(self) -> bool:
        """Whether nobody holds the claim any more; a waiting process calls this repeatedly."""
        try:
            status = self.path.lstat()
            owner = _owner(self.path) if stat.S_ISREG(status.st_mode) else None
        except FileNotFoundError:
            return False
        stamp = status.st_ino, status.st_mtime_ns
        if stamp != self.stamp:
            self.stamp, self.stamp_changed_s = stamp, time.monotonic()
        self._warn(owner)
        silent_s = max(time.time() - status.st_mtime, time.monotonic() - self.stamp_changed_s)
        return owner is None or silent_s > STALE_S or _is_dead(*owner)

    def _warn(self, owner: tuple[str, str] | None) -> None:
        if self.warned or owner is None or time.monotonic() - self.started < LOGGED_S:
            return
        self.warned = True
        host, pid = owner
        if pid in {str(child.pid) for child in active_children()}:
            return  # waiting for a helper of this process is expected
        who = f"process {pid} on {host}" if host else "another process"
        log.warning(
            "%s: waiting for %s, which is working on it; if that process is gone, the wait ends in "
            "%.0f s, or once %s is removed",
            *(self.path.name, who, STALE_S, self.path),
        )


def _owner(path: Path) -> tuple[str, str]:
    """The host and the process that a claim names, which are empty if it names no process."""
    with path.open("rb") as file:
        match = _OWNER.fullmatch(file.read(300).decode("utf-8", "replace"))
    return (match[1], match[2]) if match else ("", "")


def _is_dead(host: str, pid: str) -> bool:
    """Whether a process ran on this host and has ended."""
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _create(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{socket.gethostname()} {os.getpid()}")
    except OSError:
        path.unlink(missing_ok=True)  # otherwise others would wait for a claim without an owner
        raise
    return True


def _remove_stale(path: Path) -> None:
    """Remove a claim; renaming is atomic, so only one of several waiting processes removes it."""
    taken = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        path.rename(taken)
        taken.unlink()


def _renew(path: Path, finished: threading.Event) -> None:
    while not finished.wait(HEARTBEAT_S):
        with contextlib.suppress(OSError):
            os.utime(path)
