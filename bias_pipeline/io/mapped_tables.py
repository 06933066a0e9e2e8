"""Large tables in files that are mapped into memory: each as it was written, or made anew.

A file's name ends in a digest of its content, so that a table whose bytes changed, or that was cut,
is never read. It is written row by row, not through a map: a disk that fills up under a map ends
the process with a signal.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import math
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.errors import ResourceError
from bias_pipeline.io import stopping
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.drafts import clear_drafts, lock_draft
from bias_pipeline.io.progress import bar, track
from bias_pipeline.io.sealed import sha256, sha256_of

log = logging.getLogger(__name__)

_DIGITS = 32  # hexadecimal, of each of the two digests in a name
_NO_ALLOCATION = (errno.EOPNOTSUPP, errno.EINVAL)  # of file systems that cannot set space aside


class Filling(NamedTuple):
    """What a table is made of.

    Attributes:
        shape: of the table.
        kind: of its numbers.
        rows: each row's number and what stands there, in any order.
    """

    shape: tuple[int, ...]
    kind: type[np.generic]
    rows: Iterable[tuple[int, npt.NDArray[Any]]]


def mapped_table(cache: str | None, key: str, make: Callable[[], Filling]) -> npt.NDArray[Any]:
    """A large array by what it was computed from; in memory only without a cache.

    Args:
        cache: folder of the tables, None to write none.
        key: everything that decides the numbers.
        make: gives what the array is made of; not called if a whole table is there.

    Raises:
        ResourceError: if the folder cannot be written, or the disk is full.
    """
    if cache is None:
        filling = make()
        table = np.empty(filling.shape, filling.kind)
        with bar("pictures"):
            for row, numbers in track(filling.rows, len(table)):
                table[row] = numbers
                stopping.stop_if_requested()
        return table
    path = _whole(Path(cache), key) or _written(Path(cache), key, make())
    return np.load(path, mmap_mode="r")


def _name(key: str, digest: str) -> str:
    """A file's name: what its table was computed from, and that with what it holds."""
    return f"{sha256(key.encode())[:_DIGITS]}-{sha256(f'{key} {digest}'.encode())[:_DIGITS]}.npy"


def _whole(folder: Path, key: str) -> Path | None:
    """The file of a key, None if there is none; damaged ones are removed."""
    whole = None
    for path in sorted(folder.glob(f"{sha256(key.encode())[:_DIGITS]}-*.npy")):
        if path.name == _name(key, digest_of(path)):
            whole = path
        else:
            log.warning("%s is damaged (its checksum does not fit) and is made again", path)
            _remove(path)
    return whole


def _written(folder: Path, key: str, filling: Filling) -> Path:
    """Fill a file, which appears whole or not at all."""
    draft = folder / f".{sha256(key.encode())[:_DIGITS]}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear_drafts(folder.glob(f".{'?' * _DIGITS}.*.tmp"))
        with draft.open("wb", buffering=0) as file:
            lock_draft(file.fileno())
            _fill(file, filling)
            os.fsync(file.fileno())
        path = draft.replace(folder / _name(key, sha256_of(draft)))
    except OSError as error:
        size = math.prod(filling.shape) * np.dtype(filling.kind).itemsize
        raise ResourceError(
            f"cannot keep pictures in {folder}: {error.strerror} (a table of {size:,} bytes; "
            "paths.cache=DIR names another place)"
        ) from error
    finally:
        _remove(draft)
    _remove_earlier(folder, key)
    return path


def _fill(file: BinaryIO, filling: Filling) -> None:
    """Write a table as ``np.save`` does, its space set aside before the first row is computed."""
    kind = np.dtype(filling.kind)
    header = {
        "descr": np.lib.format.dtype_to_descr(kind),
        "fortran_order": False,
        "shape": filling.shape,
    }
    np.lib.format.write_array_header_1_0(file, header)
    first, row_shape = file.tell(), filling.shape[1:]
    row_size = math.prod(row_shape) * kind.itemsize
    _allocate(file.fileno(), first + filling.shape[0] * row_size)
    with bar("pictures"):
        for row, numbers in track(filling.rows, filling.shape[0]):
            content = np.ascontiguousarray(np.broadcast_to(numbers, row_shape), kind).tobytes()
            _write_at(file.fileno(), content, first + row * row_size)
            stopping.stop_if_requested()


def _allocate(handle: int, size: int) -> None:
    """Set space aside for a file, and make it that long."""
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno not in _NO_ALLOCATION:
            raise
        os.truncate(handle, size)


def _write_at(handle: int, content: bytes, place: int) -> None:
    rest = memoryview(content)
    while rest:
        n_written = os.pwrite(handle, rest, place)
        rest, place = rest[n_written:], place + n_written


def _remove_earlier(folder: Path, key: str) -> None:
    """Remove the table that an earlier version left under the key alone, without a checksum."""
    earlier = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.npy"
    if earlier.is_file():
        log.warning("%s is of an earlier version, without a checksum, and was made again", earlier)
        _remove(earlier)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
