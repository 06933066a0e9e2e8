"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bias_pipeline.io.drafts import lock_draft

DRAFTS = ".????????.tmp"  # what names of drafts are like

# Can only be read by setting it, which another thread would notice; so it is read once.
UMASK = os.umask(0o077)
os.umask(UMASK)


def replace_file(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file so that a reader sees the old or the new content whole, never a part.

    Args:
        path: the file; its folder must exist.
        content: its new content.
        sync: force it to the disk before it takes its name.
    """
    with replacing(path, sync=sync) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Write a file in pieces; it takes its name at the end, and not at all if something is raised.

    Args:
        path: the file; its folder must exist.
        sync: force it to the disk before it takes its name.

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
            os.fchmod(handle, 0o666 & ~UMASK)  # as any other file: others may read a result
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
