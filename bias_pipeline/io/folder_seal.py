"""Checksums of the files in a cache folder, in the format of ``sha256sum --check``.

They show whether a folder is complete and unchanged.
"""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.atomic import replace_file
from bias_pipeline.io.checksummed_json import sha256_of
from bias_pipeline.io.digests import digest_of

SEAL = "SHA256SUMS"


def seal_folder(folder: Path) -> None:
    """Write the checksums of a folder's files into it.

    Raises:
        OSError: if it cannot be read or written.
    """
    lines = [f"{sha256_of(path)}  {path.name}\n" for path in _files(folder)]
    replace_file(folder / SEAL, "".join(lines).encode())


def is_whole(folder: Path) -> bool:
    """Whether a folder contains exactly the files it was sealed with.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     folder = Path(name)
        ...     _ = (folder / "a").write_text("1")
        ...     seal_folder(folder)
        ...     before = is_whole(folder)
        ...     _ = (folder / "a").write_text("2")
        ...     before, is_whole(folder)
        (True, False)
    """
    try:
        lines = [f"{digest_of(path)}  {path.name}\n" for path in _files(folder)]
        return (folder / SEAL).read_bytes() == "".join(lines).encode()
    except (OSError, ResourceError):
        return False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name != SEAL)
