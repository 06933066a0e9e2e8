"""Caches arrays and large tables; a damaged entry counts as absent and is computed again.

An array has a key, which says what was computed, and a checksum, which shows damage. A table is
mapped into memory. The name of its file ends in a digest of its content, so a changed or cut table
is never read. A table is written row by row, since a full disk kills a process that writes through
a map. Writers never wait for each other.
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
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import ResourceError
from bias_pipeline.io import signals
from bias_pipeline.io.digests import digest_of, sha256, sha256_of
from bias_pipeline.io.files import DRAFTS, clear_drafts, lock_draft, replace_file
from bias_pipeline.io.progress import bar, track

log = logging.getLogger(__name__)


class ArrayCache:
    """Arrays of finite float64 on disk.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = ArrayCache(folder)
        ...     cache.put("ab12", np.ones((2, 3)))
        ...     cache.get("ab12").shape, cache.get("cd34")
        ((2, 3), None)
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def get(self, key: str) -> Float64Array | None:
        """The array stored under a key, or None if it is absent or damaged."""
        path = self._path(key)
        try:
            # A checksum, then the number of axes, their lengths and the values
            raw = path.read_bytes()
            checksum, body = raw[:32], raw[32:]
            if hashlib.sha256(key.encode() + body).digest() != checksum:
                raise ValueError("its checksum does not fit")
            n_axes = int(np.frombuffer(body[:8], "<i8")[0])
            shape = np.frombuffer(body[8 : 8 + 8 * n_axes], "<i8")
            array = np.frombuffer(body[8 + 8 * n_axes :], "<f8").reshape(shape).astype(np.float64)
            if not np.isfinite(array).all():
                raise ValueError("it has a value that is not a number")
            return array
        except FileNotFoundError:
            return None
        except (ValueError, IndexError, OSError) as error:
            log.warning("cache entry %s is damaged (%s) and will be computed again", path, error)
            return None

    def put(self, key: str, array: Float64Array) -> None:
        """Store an array, unless it has NaN or infinities."""
        if not np.isfinite(array).all():
            return
        header = np.array([array.ndim, *array.shape], "<i8").tobytes()
        body = header + np.ascontiguousarray(array, "<f8").tobytes()
        path = self._path(key)
        try:
            _clear_once(self.root)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, hashlib.sha256(key.encode() + body).digest() + body, sync=False)
        except OSError as error:
            raise ResourceError(
                f"cannot write the cache at {self.root}: {error.strerror}"
            ) from error

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / key


@cache
def _clear_once(root: Path) -> None:
    """Remove the drafts that killed processes left in a cache, once for each cache and process."""
    clear_drafts(root.glob(f"??/{DRAFTS}"))


_DIGITS = 32  # hexadecimal digits of each of the two digests in a name
_NO_ALLOCATION = (
    errno.EOPNOTSUPP,
    errno.EINVAL,
)  # errors of file systems that cannot reserve space


class Filling(NamedTuple):
    shape: tuple[int, ...]  # the table's shape
    kind: type[np.generic]  # the type of the table's numbers
    rows: Iterable[tuple[int, npt.NDArray[Any]]]  # number and values of each row, in any order


def mapped_table(cache: str | None, key: str, make: Callable[[], Filling]) -> npt.NDArray[Any]:
    """The large array of a key, mapped from its file in the cache; without a cache, in memory."""
    if cache is None:
        filling = make()
        table = np.empty(filling.shape, filling.kind)
        with bar("pictures"):
            for row, numbers in track(filling.rows, len(table)):
                table[row] = numbers
                signals.stop_if_requested()
        return table
    path = _find_whole(Path(cache), key) or _write(Path(cache), key, make())
    return np.load(path, mmap_mode="r")


def _name(key: str, digest: str) -> str:
    """The name of a table's file: a digest of its key, then a digest of key and content."""
    return f"{sha256(key.encode())[:_DIGITS]}-{sha256(f'{key} {digest}'.encode())[:_DIGITS]}.npy"


def _find_whole(folder: Path, key: str) -> Path | None:
    """The intact file of a key, or None; a damaged file is removed."""
    whole = None
    for path in sorted(folder.glob(f"{sha256(key.encode())[:_DIGITS]}-*.npy")):
        if path.name == _name(key, digest_of(path)):
            whole = path
        else:
            log.warning("%s is damaged (its checksum does not fit) and is computed again", path)
            _remove(path)
    return whole


def _write(folder: Path, key: str, filling: Filling) -> Path:
    """Write the file of a table, completely or not at all."""
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
            f"cannot store pictures in {folder}: {error.strerror} (a table of {size:,} bytes; "
            "paths.cache=DIR names another folder)"
        ) from error
    finally:
        _remove(draft)
    return path


def _fill(file: BinaryIO, filling: Filling) -> None:
    """Write a table as ``np.save`` does; reserve its space before computing the first row."""
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
            signals.stop_if_requested()


def _allocate(handle: int, size: int) -> None:
    """Reserve space for a file, and set its length."""
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


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
