"""Folders that appear completely or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from tempfile import mkdtemp

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.atomic import UMASK
from bias_pipeline.io.drafts import clear_drafts, lock_draft


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """A draft to write into, next to the folder; it gets the folder's name if nothing is raised.

    Args:
        folder: a new one.

    Raises:
        ResourceError: if it already exists, or cannot be written.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as name:
        ...     with drafted(Path(name, "mine")) as draft:
        ...         _ = (draft / "a.txt").write_text("a")
        ...     sorted(path.name for path in Path(name, "mine").iterdir())
        ['a.txt']
    """
    require_new(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Absolute, since processes in other folders may write into it.
        clear_drafts(folder.parent.glob(f".{escape(folder.name)}-????????"))
        draft = Path(mkdtemp(dir=folder.parent.absolute(), prefix=f".{folder.name}-"))
    except OSError as error:
        raise ResourceError(f"cannot write to {folder.parent}: {error.strerror}") from error
    handle = os.open(draft, os.O_RDONLY)
    lock_draft(handle)
    try:
        yield draft
        for path in draft.rglob("*"):  # some libraries write files that nobody else may read
            path.chmod((0o777 if path.is_dir() else 0o666) & ~UMASK)
        draft.chmod(0o777 & ~UMASK)
        draft.replace(folder)
    except OSError as error:
        raise ResourceError(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(handle)


def require_new(folder: Path) -> None:
    """Check before any work that a folder is new or empty.

    Raises:
        ResourceError: if it is not.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ResourceError(f"{folder}: already exists; name a new folder (--out)")
