"""Files written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bias_pipeline.io.drafts import lock_draft

DRAFTS = ".????????.tmp"  # the pattern of drafts' names

# Reading it means setting it, which other threads would notice; so it is read once.
UMASK = os.umask(0o077)
os.umask(UMASK)


def replace_file(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file so that a reader sees all of the old or all of the new content.

    Args:
        path: the file; its folder must exist.
        content: its new content.
        sync: force it to the disk before it gets its name.
    """
    with replacing(path, sync=sync) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Write a file in pieces; it gets its name at the end, or never if something is raised.

    Args:
        path: the file; its folder must exist.
        sync: force it to the disk before it gets its name.

    Yields:
        The open file.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "letters")
        ...     with replacing(path) as file:
        ...         _ = file.write(b"ab"), path.exists()
        ...     path.read_bytes()
        b'ab'
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            lock_draft(handle)
            os.fchmod(handle, 0o666 & ~UMASK)  # so that others may read it
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
