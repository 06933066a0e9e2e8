"""Files of users that a process reads again only after a change.

This module keeps the contents of small files, since several readers open each file. For larger
files, callers keep what they computed; :func:`files_opened` says which files they used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

TICK = 20_000_000  # nanoseconds; systems set the stamps of files by a clock of 1 to 10 ms
_COARSE_TICK = 2_000_000_000  # the clock of file systems that stamp whole seconds, as FAT does
_ROOM = 1 << 24  # bytes of all contents that are kept; larger files would cost memory all the time


class Traits(NamedTuple):
    """The file system's facts on a file, found without reading it; every write changes them."""

    size: int  # in bytes
    written: int  # when its content was written, in nanoseconds; programs can set this time back
    # When content or attributes changed, in nanoseconds; no program can set this time back
    changed: int
    inode: int  # the file's number; a file that replaces another has a different number

    @classmethod
    def read(cls, path: Path) -> Traits:
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def is_settled(self, now: int) -> bool:
        """Whether a later write would certainly change the time stamp."""
        last = max(self.written, self.changed)
        whole_seconds = last % 1_000_000_000 == 0
        return last + (_COARSE_TICK if whole_seconds else TICK) < now


# The files opened so far in each block that has not ended
_under_way: list[dict[Path, Traits]] = []


@contextmanager
def files_opened() -> Iterator[Mapping[Path, Traits]]:
    """The files that are opened within the block, each with its traits before it was opened."""
    files: dict[Path, Traits] = {}
    _under_way.append(files)
    try:
        yield files
    finally:
        _under_way.pop()


def note_opened(path: Path, traits: Traits | None = None) -> None:
    """Note a file or a folder that is read, for :func:`files_opened`."""
    for files in _under_way:
        files.setdefault(path, traits or Traits.read(path))


def are_unchanged(files: Mapping[Path, Traits]) -> bool:
    """Whether no file was written after its traits were read."""
    try:
        return all(Traits.read(path) == traits for path, traits in files.items())
    except OSError:
        return False


_contents: dict[Path, tuple[Traits, bytes]] = {}  # the file that was read last comes last


def open_kept(path: Path) -> BinaryIO:
    """A file opened for reading; a small file is read again only after a change."""
    place, traits, now = path.absolute(), Traits.read(path), time.time_ns()
    note_opened(place, traits)
    before, content = _contents.pop(place, (None, b""))
    if before != traits:
        if traits.size > _ROOM:
            return path.open("rb")
        with path.open("rb") as file:
            content = file.read()
    if before == traits or (traits.is_settled(now) and Traits.read(path) == traits):
        _contents[place] = traits, content
        _forget_oldest()
    return BytesIO(content)


def _forget_oldest() -> None:
    """Drop the oldest contents until the rest takes at most ``_ROOM`` bytes."""
    while sum(traits.size for traits, _ in _contents.values()) > _ROOM:
        del _contents[next(iter(_contents))]
