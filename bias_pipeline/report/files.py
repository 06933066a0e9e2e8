"""Files that a command is asked to write, beside the folder of results."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.atomic import replace_file


def check_places(*paths: Path | None) -> None:
    """Know before any work that files have a folder to lie in.

    Raises:
        ResourceError: naming the file that has none.
    """
    for path in filter(None, paths):
        if not path.parent.is_dir():
            raise ResourceError(f"{path}: the folder {path.parent} is absent; make it first")


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        ResourceError: if it cannot be written.
    """
    try:
        replace_file(path, content, sync=False)
    except OSError as error:
        raise ResourceError(f"cannot write {path}: {error.strerror or error}") from error
