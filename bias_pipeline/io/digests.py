"""Computes digests of files, and writes files in which later changes are noticed.

A large file is read again only after a change. For this, the digests of a folder's files are
recorded in a ledger in the user's cache. A JSON file may contain its own checksum; if it was
changed, it is refused. A cache folder may contain a list of checksums (as for ``sha256sum
--check``); if the folder was changed, it is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError, refused_by_system
from bias_pipeline.io.files import replace_file
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.kept_files import Traits
from bias_pipeline.io.paths import user_cache


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits; the file is read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def strict_json(content: object) -> bytes:
    text = json.dumps(content, allow_nan=False, indent=1, ensure_ascii=False)
    return text.encode("utf-8", "replace")


def seal(content: Mapping[str, Any], *, within: str) -> bytes:
    """Plain data as JSON that contains its own checksum.

    The checksum is the last entry of the object ``content[within]``, which must have other entries.

    Example:
        >>> unseal(json.loads(seal({"a": 1, "b": {"c": 2}}, within="b")), within="b")
        {'a': 1, 'b': {'c': 2}}
    """
    text = strict_json({**content, within: {**content[within], "checksum": ""}})
    line = b',\n  "checksum": ""'
    checksum = sha256(text.replace(line, b"", 1)).encode()
    return text.replace(line, line[:-1] + checksum + b'"', 1)


_CHECKSUM = re.compile(rb',\n  "checksum": "[0-9a-f]{64}"')  # matches the last entry of an object


def unseal(content: Any, *, within: str, written: bytes = b"") -> dict[str, Any]:
    """Check a sealed object, and return it without its checksum."""
    section = content.get(within) if isinstance(content, dict) else None
    if not isinstance(section, dict) or "checksum" not in section:
        raise ValueError("it has no checksum")
    bare = {**content, within: {k: value for k, value in section.items() if k != "checksum"}}
    checksum = str(section["checksum"])
    unmarked = _CHECKSUM.sub(b"", written, count=1) if written else b""
    if checksum != sha256(unmarked) and checksum != sha256(strict_json(bare)):
        raise ValueError("its checksum does not fit")
    return bare


def read_unchanged(path: Path, checksum: object) -> bytes:
    """The content of a file, after a check against the given checksum."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); run what wrote it again"
        ) from error
    if sha256(content) != checksum:
        raise DataError(f"{path}: is damaged (its checksum does not fit); run what wrote it again")
    return content


_WORTH = 1 << 24  # bytes; fewer are read again faster than a ledger is
_WHAT = "digests of a folder's files: {name: [size, written, changed, inode, digest]}"


Noted = dict[str, tuple[Traits, str]]


class _Ledger:
    """Digests of the files in a folder, each with the traits that the file had before reading."""

    def __init__(self, folder: Path, file: Path | None) -> None:
        self.folder = folder
        self.file = file  # None if the user has no home
        self.noted = _read(file) if file else {}
        self.fresh = 0  # bytes that were read and are not recorded yet

    def recorded_digest(self, name: str) -> str | None:
        """The recorded SHA-256 of a file, or None if there is no record or the file has changed."""
        traits, digest = self.noted.get(name, (None, None))
        return digest if traits == Traits.read(self.folder / name) else None

    def digest(self, name: str) -> str:
        """The SHA-256 of a file. The file is read only if there is no valid record."""
        return self.recorded_digest(name) or self.read(name)

    def read(self, name: str) -> str:
        """The SHA-256 of a file. The file is read even if there is a valid record."""
        path, now = self.folder / name, time.time_ns()
        traits = Traits.read(path)
        digest = sha256_of(path)
        if traits.is_settled(now) and Traits.read(path) == traits:
            self.noted[name] = traits, digest
            self.fresh += traits.size
        return digest

    def keep(self) -> None:
        """If much was read, merge the records into the ledger on disk. Failures are ignored."""
        if self.file is None or self.fresh < _WORTH:
            return
        self.fresh = 0
        with contextlib.suppress(OSError):
            there = {path.name for path in self.folder.iterdir()}
            noted = (_read(self.file) | self.noted).items()
            rows = {name: [*traits, digest] for name, (traits, digest) in noted if name in there}
            self.file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.file, json.dumps(rows).encode(), sync=False)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits. The file is read again only after a change.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     digest_of(Path(file.name))[:8]
        'e3b0c442'
    """
    ledger = _ledger_of(path)
    try:
        digest = ledger.digest(path.name)
    except OSError as error:
        raise refused_by_system(error) from error
    ledger.keep()
    return digest


def digests_of(paths: Iterable[Path]) -> list[str | None]:
    """The SHA-256 of each of many files, or None for a file that cannot be read."""
    digests: list[str | None] = []
    ledgers: set[_Ledger] = set()
    for path in paths:
        ledgers.add(ledger := _ledger_of(path))
        try:
            digests.append(ledger.digest(path.name))
        except OSError:
            digests.append(None)
    for ledger in ledgers:
        ledger.keep()
    return digests


def digest_mismatch(paths: Iterable[Path]) -> list[Path]:
    """The files whose content changed although the file system reports no write.

    The file system or the disk is then at fault. All files are read, and new digests are recorded.
    Files that cannot be read are skipped.
    """
    changed = []
    for path in paths:
        ledger = _ledger_of(path)
        with contextlib.suppress(OSError):
            before, now = ledger.recorded_digest(path.name), ledger.read(path.name)
            if before not in (None, now):
                changed.append(path)
                ledger.fresh = _WORTH
            ledger.keep()
    return changed


def _ledger_of(path: Path) -> _Ledger:
    try:
        cache = user_cache() / "digests"
    except ResourceError:
        cache = None
    return _ledger(Path(os.path.abspath(path)).parent, cache)  # noqa: PTH100


@lru_cache(maxsize=10_000)
def _ledger(folder: Path, cache: Path | None) -> _Ledger:
    name = f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.json"
    return _Ledger(folder, cache and cache / name)


def _read(file: Path) -> Noted:
    """The ledger that is stored on disk; empty if it cannot be read."""
    try:
        rows = expect(load_json(file, what=_WHAT), dict, file, "")
        return {name: _row(row) for name, row in rows.items()}
    except (BiasPipelineError, ValueError):
        return {}


def _row(row: object) -> tuple[Traits, str]:
    match row:
        case [int(size), int(written), int(changed), int(inode), str(digest)]:
            return Traits(size, written, changed, inode), digest
    raise ValueError("is not an entry of a ledger")


SEAL = "SHA256SUMS"


def seal_folder(folder: Path) -> None:
    """Write the checksums of all files in a folder into the folder."""
    lines = [f"{sha256_of(path)}  {path.name}\n" for path in _files(folder)]
    replace_file(folder / SEAL, "".join(lines).encode())


def is_whole(folder: Path) -> bool:
    """Whether a folder has exactly the files, unchanged, that it had when it was sealed.

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
