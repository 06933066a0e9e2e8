"""What is in a file, as one short text; a large file is not read again while nobody wrote to it.

As git does for a work tree, a ledger for each folder, in the user's cache, notes what its files
held when they were read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bias_pipeline.errors import BiasPipelineError, ResourceError, refused_by_system
from bias_pipeline.io.atomic import replace_file
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.paths import user_cache
from bias_pipeline.io.sealed import sha256_of

_WORTH = 1 << 24  # bytes; fewer are read again sooner than they are looked up
_TICK = 2_000_000_000  # nanoseconds between two times of the coarsest clock that file systems have
_WHAT = "digests of a folder's files: {name: [size, written, changed, inode, digest]}"


class Traits(NamedTuple):
    """What a file system tells of a file without reading it; any writing changes some of it.

    Attributes:
        size: in bytes.
        written: when its content was, in nanoseconds; anyone can set it back.
        changed: when anything about it was, in nanoseconds; nobody can set it back.
        inode: its number; a file that takes another's name has one of its own.
    """

    size: int
    written: int
    changed: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Traits:
        """Those of a file.

        Raises:
            OSError: if there is none.
        """
        told = path.stat()
        return cls(told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino)

    def settled(self, now: int) -> bool:
        """Whether a later writing would be seen: it has another time than this one."""
        return max(self.written, self.changed) + _TICK < now


Noted = dict[str, tuple[Traits, str]]


class _Ledger:
    """Digests of the files of a folder, with what the system told of each before it was read."""

    def __init__(self, folder: Path, kept: Path | None) -> None:
        self.folder = folder
        self.kept = kept  # nowhere where a user has no home
        self.noted = _read(kept) if kept else {}
        self.fresh = 0  # bytes that were read and are not kept yet

    def known(self, name: str) -> str | None:
        """SHA-256 of a file as it was noted, None if it was not or somebody wrote to it since."""
        traits, digest = self.noted.get(name, (None, None))
        return digest if traits == Traits.of(self.folder / name) else None

    def digest(self, name: str) -> str:
        """SHA-256 of a file, read only if it is not known."""
        return self.known(name) or self.read(name)

    def read(self, name: str) -> str:
        """The same, read anew."""
        path, now = self.folder / name, time.time_ns()
        traits = Traits.of(path)
        digest = sha256_of(path)
        if traits.settled(now) and Traits.of(path) == traits:
            self.noted[name] = traits, digest
            self.fresh += traits.size
        return digest

    def keep(self) -> None:
        """Add to what other processes kept, if much was read; if that fails, it is read again."""
        if self.kept is None or self.fresh < _WORTH:
            return
        self.fresh = 0
        with contextlib.suppress(OSError):
            there = {path.name for path in self.folder.iterdir()}
            noted = (_read(self.kept) | self.noted).items()
            rows = {name: [*own, digest] for name, (own, digest) in noted if name in there}
            self.kept.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.kept, json.dumps(rows).encode(), sync=False)


def digest_of(path: Path) -> str:
    """SHA-256 (hex) of a file; not read again as long as nobody writes to it.

    Raises:
        ResourceError: if it cannot be read.

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
    """Those of many files, None for one that cannot be read."""
    found: list[str | None] = []
    ledgers: set[_Ledger] = set()
    for path in paths:
        ledgers.add(ledger := _ledger_of(path))
        try:
            found.append(ledger.digest(path.name))
        except OSError:
            found.append(None)
    for ledger in ledgers:
        ledger.keep()
    return found


def belied(paths: Iterable[Path]) -> list[Path]:
    """Read files anew, and name those of which something else was noted.

    Nobody wrote to them, as far as their file system tells; so it, or the disk, is at fault. What
    they hold now is noted. Files that cannot be read are passed over.
    """
    found = []
    for path in paths:
        ledger = _ledger_of(path)
        with contextlib.suppress(OSError):
            before, now = ledger.known(path.name), ledger.read(path.name)
            if before not in (None, now):
                found.append(path)
                ledger.fresh = _WORTH
            ledger.keep()
    return found


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


def _read(kept: Path) -> Noted:
    """What was kept; nothing where it cannot be read."""
    try:
        rows = expect(load_json(kept, what=_WHAT), dict, kept, "")
        return {name: _row(row) for name, row in rows.items()}
    except (BiasPipelineError, ValueError):
        return {}


def _row(row: object) -> tuple[Traits, str]:
    match row:
        case [int(size), int(written), int(changed), int(inode), str(digest)]:
            return Traits(size, written, changed, inode), digest
    raise ValueError("is no entry of a ledger")
