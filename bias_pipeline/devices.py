"""The GPUs of one machine, shared out among processes: one each, nobody's twice.

A process holds a lock on a file named after its device. The kernel drops the lock when the process
ends, however it ends, so a killed job leaves its device free and there is nothing to clean up.
"""

from __future__ import annotations

import getpass
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.errors import ResourceError

VISIBLE = "CUDA_VISIBLE_DEVICES"
POLL_S = 0.2

_held: Device | None = None


class Device:
    """A device that this process holds until it ends or lets go.

    Args:
        name: as CUDA numbers it, or a UUID.
        handle: the open, locked file.
    """

    def __init__(self, name: str, handle: int) -> None:
        self.name = name
        self._handle = handle

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._handle)


def take(names: Sequence[str], folder: Path | None = None) -> Device:
    """Wait until one of some devices is free, and hold it.

    Args:
        names: of the devices that may be taken.
        folder: of the lock files; one of the user's on this machine if left out.

    Raises:
        ResourceError: if the lock files cannot be written.

    Example:
        >>> with tempfile.TemporaryDirectory() as locks:
        ...     first, second = (take(["0", "1"], Path(locks)) for _ in range(2))
        ...     first.name, second.name
        ('0', '1')
    """
    import fcntl  # not on Windows

    place = folder or Path(tempfile.gettempdir(), f"bias_pipeline-devices-{getpass.getuser()}")
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            for name in names:
                handle = os.open(place / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(handle)
                else:
                    return Device(name, handle)
            time.sleep(POLL_S)
    except OSError as error:
        raise ResourceError(f"devices cannot be locked in {place}: {error.strerror}") from error


def held() -> str | None:
    """The device of this process, None if it has none."""
    return _held.name if _held else None


def of_this_process(names: Sequence[str]) -> None:
    """Take a device for this process at its first call; CUDA then sees no other.

    CUDA cannot change devices once it has started, so a process that runs several jobs keeps its
    device.

    Args:
        names: of the devices that may be taken; none leaves everything as it is.
    """
    global _held
    if names and _held is None:
        _held = take(names)
        os.environ[VISIBLE] = _held.name
