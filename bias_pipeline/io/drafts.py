"""Removes drafts, unfinished files and folders, that killed processes left.

The writer of a draft holds a lock on it; the system releases it when the process ends in any way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

YOUNG_S = 60.0  # a younger draft may not be locked yet, or be about to get its name


def lock_draft(handle: int) -> None:
    """Lock an open draft until it is closed; does nothing if the file system has no locks."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def clear_drafts(drafts: Iterable[Path]) -> None:
    """Remove drafts that nobody has locked, and that have not changed for a minute.

    Args:
        drafts: files and folders whose names are those of drafts.
    """
    for path in drafts:
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > YOUNG_S and not _is_held(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_held(path: Path) -> bool:
    """Whether a process has locked a draft; yes if that is unknown."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
