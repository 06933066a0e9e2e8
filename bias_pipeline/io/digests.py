"""What is in a file, as one short text."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from bias_pipeline.errors import refused_by_system


def digest_of(path: Path) -> str:
    """SHA-256 (hex) of a file; read once a process as long as its size and time stay.

    Raises:
        ResourceError: if it cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     digest_of(Path(file.name))[:8]
        'e3b0c442'
    """
    try:
        told = path.stat()
        return _digest(path, told.st_size, told.st_mtime_ns)
    except OSError as error:
        raise refused_by_system(error) from error


@lru_cache(maxsize=1_000_000)
def _digest(path: Path, size: int, changed: int) -> str:
    del size, changed  # a file that differs in them is another
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
