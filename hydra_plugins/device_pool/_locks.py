"""Devices held by processes: a locked file each, which the kernel unlocks when its holder ends.

There is no list of free devices that could be wrong after a crash, and nothing to clean up.
"""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path


class Device:
    """A device that this process holds, and every process that was given its handle.

    Args:
        name: as the driver knows it.
        handle: of the locked file.
    """

    def __init__(self, name: str, handle: int) -> None:
        self.name = name
        self.handle = handle

    def release(self) -> None:
        """Let go of it here; a child with the handle holds it until it ends."""
        os.close(self.handle)


def folder_of_locks(chosen: str | None = None) -> Path:
    """Where lock files are; made if it is not there.

    Args:
        chosen: the user's folder for this purpose on this machine if left out.
    """
    user = Path(tempfile.gettempdir(), f"device_pool-{getpass.getuser()}")
    folder = user if chosen is None else Path(chosen)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def take(names: Sequence[str], folder: Path) -> Device | None:
    """Hold the first device that nobody holds; None if all are held.

    Example:
        >>> with tempfile.TemporaryDirectory() as locks:
        ...     first, second, third = (take(["0", "1"], Path(locks)) for _ in range(3))
        ...     first.name, second.name, third
        ('0', '1', None)
    """
    import fcntl  # not on Windows

    for name in names:
        handle = os.open(folder / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
        else:
            return Device(name, handle)
    return None
