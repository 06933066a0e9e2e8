"""Files with checksums: a changed file is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bias_pipeline.errors import DataError


def sha256(content: bytes) -> str:
    """The checksum (hex) of a file's content."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """The checksum (hex) of a file, read in pieces.

    Raises:
        OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dumped(content: object) -> bytes:
    """Plain data as strict JSON."""
    text = json.dumps(content, allow_nan=False, indent=1, ensure_ascii=False)
    return text.encode("utf-8", "replace")


def sealed(content: Mapping[str, Any], *, within: str) -> bytes:
    """Plain data as JSON with its own checksum.

    Args:
        content: an object.
        within: the key of the object that gets the checksum.

    Example:
        >>> unsealed(json.loads(sealed({"a": 1, "b": {}}, within="b")), within="b")
        {'a': 1, 'b': {}}
    """
    section = {**content[within], "checksum": sha256(dumped(content))}
    return dumped({**content, within: section})


def unsealed(content: Any, *, within: str) -> dict[str, Any]:
    """Sealed content, checked, without its checksum.

    Args:
        content: as it was read.
        within: see :func:`sealed`.

    Raises:
        ValueError: if the checksum is absent or wrong.
    """
    section = content.get(within) if isinstance(content, dict) else None
    if not isinstance(section, dict) or "checksum" not in section:
        raise ValueError("it has no checksum")
    bare = {**content, within: {k: value for k, value in section.items() if k != "checksum"}}
    if section["checksum"] != sha256(dumped(bare)):
        raise ValueError("its checksum does not fit")
    return bare


def read_unchanged(path: Path, checksum: object) -> bytes:
    """The content of a file, checked against its checksum.

    Raises:
        DataError: if it cannot be read, or was changed.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); run what wrote it again"
        ) from error
    if sha256(content) != checksum:
        raise DataError(f"{path}: is damaged (its checksum does not fit); run what wrote it again")
    return content
