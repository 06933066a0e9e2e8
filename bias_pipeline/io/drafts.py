"""Drafts that killed processes left: unfinished files and folders that nobody works at any more.

Whoever writes a draft holds a lock on it, which the system takes away when the process ends,
however that was.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

YOUNG_S = 60.0  # a draft that was touched so lately may be about to be locked, or to get its name


def lock_draft(handle: int) -> None:
    """Hold an open draft until it is closed; where a file system has no locks, do without."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def clear_drafts(drafts: Iterable[Path]) -> None:
    """Remove those that nobody holds and nobody has touched for a minute.

    Args:
        drafts: files and folders whose names are those of drafts.
    """
    for path in drafts:
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > YOUNG_S and not _is_held(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_held(path: Path) -> bool:
    """Whether a process holds a draft; yes where that cannot be known."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
