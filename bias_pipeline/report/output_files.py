"""Files that a user asked for, outside the folder of results."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.files import replace_file


def check_places(*paths: Path | None) -> None:
    """Check before any work that the folders of files exist.

    Raises:
        ResourceError: naming the file that has none.
    """
    for path in filter(None, paths):
        if not path.parent.is_dir():
            raise ResourceError(f"{path}: the folder {path.parent} does not exist; create it first")


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        ResourceError: if it cannot be written.
    """
    try:
        replace_file(path, content, sync=False)
    except OSError as error:
        raise ResourceError(f"cannot write {path}: {error.strerror or error}") from error
