"""Writes files and folders that appear completely or not at all, and reads and writes CSV.

Each file or folder is written as a draft beside its place. The writer of a draft holds a lock on
the draft. The system releases this lock when the process ends in any way, and drafts without a lock
are removed.

CSV is for people, and this package reads it too. A spreadsheet runs a cell that begins like a
formula. Such a text gets a leading single quote, which means "this is text" to spreadsheets;
:func:`read_csv` removes the quote. Numbers are not changed, even if they are negative.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import hashlib
import io
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, BinaryIO

from bias_pipeline.errors import ResourceError, cannot_write

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

YOUNG_S = 60.0  # a younger draft may not be locked yet, or may be about to get its name


def lock_draft(handle: int) -> None:
    """Lock an open draft until it is closed; does nothing if the file system has no locks."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def clear_drafts(drafts: Iterable[Path]) -> None:
    """Remove drafts that no process has locked and that have not changed for a minute."""
    for path in drafts:
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > YOUNG_S and not _is_locked(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_locked(path: Path) -> bool:
    """Whether a process has locked a draft; True if nobody can find out."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


DRAFTS = ".????????.tmp"  # the pattern of drafts' names

# A umask is read by setting it, which other threads would notice; so it is read only once.
UMASK = os.umask(0o077)
os.umask(UMASK)


def check_places(*paths: Path | None) -> None:
    """Check before any work that files can be written and are not folders."""
    for path in filter(None, paths):
        if path.is_dir():
            raise ResourceError(f"{path} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise ResourceError(f"{path}: the folder {path.parent} does not exist; create it first")
        if not os.access(path.parent, os.W_OK):
            raise cannot_write(path, OSError(errno.EACCES, f"{path.parent} is read-only"))


class HashedFile(io.BufferedWriter):
    """A file that is written from its start, with the checksum of the content so far."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self.sha = hashlib.sha256()

    def write(self, content: ReadableBuffer, /) -> int:
        self.sha.update(content)
        return super().write(content)


@contextlib.contextmanager
def hashed_file(path: Path) -> Iterator[HashedFile]:
    """Write a file in pieces and force it to disk."""
    with HashedFile(path) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_hashed(path: Path, content: ReadableBuffer) -> str:
    """Write a file and force it to disk; returns its checksum, which saves a second reading."""
    with hashed_file(path) as file:
        file.write(content)
    return file.sha.hexdigest()


def write_file(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a file completely or not at all; see :func:`replace_file`."""
    try:
        replace_file(path, content, sync=sync)
    except OSError as error:
        raise cannot_write(path, error) from error


def replace_file(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file so that a reader sees all of the old or all of the new content."""
    with replacing(path, sync=sync) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Write a file in pieces. The file gets its name at the end, or never if an error is raised.

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
            os.fchmod(handle, 0o666 & ~UMASK)  # so that others may read it
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk does not say which file it refused
        raise


@contextmanager
def draft_of(folder: Path) -> Iterator[Path]:
    """A draft folder to write into. The draft gets the folder's name unless an error is raised.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as name:
        ...     with draft_of(Path(name, "mine")) as draft:
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
        raise cannot_write(f"to {folder.parent}", error) from error
    handle = os.open(draft, os.O_RDONLY)
    lock_draft(handle)
    try:
        yield draft
        for path in draft.rglob("*"):  # some libraries write files that nobody else may read
            path.chmod((0o777 if path.is_dir() else 0o666) & ~UMASK)
        draft.chmod(0o777 & ~UMASK)
        draft.replace(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(handle)


def require_new(folder: Path) -> None:
    """Check, before any work, that a folder is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ResourceError(f"{folder}: already exists; name a new folder (--out)")


# The beginnings of formulas, also in full-width characters, and also behind single quotes.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def csv_text(lines: Iterable[Sequence[object]]) -> str:
    r"""Lines of values as CSV; NaN becomes an empty cell, and blanks join the items of a list.

    Example:
        >>> csv_text([("id", "value"), ("=1+1", -0.5), ("a", math.nan)])
        "id,value\n'=1+1,-0.5\na,\n"
    """
    written = _Written()
    # csv quotes only line breaks that occur in the terminator, and both kinds need quotes.
    csv.writer(written, lineterminator="\r\n").writerows(map(_cell, line) for line in lines)
    return "".join(f"{line[:-2]}\n" for line in written)


def table_csv(lines: Sequence[Mapping[str, object]]) -> str:
    """CSV of mappings with equal keys, which form the header; empty without mappings."""
    head = list(lines[0]) if lines else []
    return csv_text([head, *([line[key] for key in head] for line in lines)] if lines else [])


def read_csv(text: str) -> list[dict[str, str]]:
    r"""The lines below the header with all values as text; the inverse of :func:`csv_text`.

    Example:
        >>> read_csv("id,value\n'=1+1,-0.5\n")
        [{'id': '=1+1', 'value': '-0.5'}]
    """
    try:
        lines = [
            [cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell for cell in line]
            for line in csv.reader(io.StringIO(text, newline=""))
        ]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


class _Written(list[str]):
    """The lines that a csv.writer writes."""

    write = list.append


def _cell(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if isinstance(value, tuple | list):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
