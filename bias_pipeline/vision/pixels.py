"""Pictures as arrays of one size, edits made, each read once for all who learn from it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.pictures import Pictures, Pixels
from bias_pipeline.errors import ResourceError
from bias_pipeline.io import stopping
from bias_pipeline.io.progress import bar, track
from bias_pipeline.vision.drawn import drawn

VERSION = 1  # raise it whenever any pixel changes


def read_pixels(pictures: Pictures, row: int, side: int) -> Pixels:
    """(side, side, 3) one picture with its edits made, squeezed into a square.

    Raises:
        DataError: see :func:`~bias_pipeline.vision.drawn.drawn`.
    """
    from PIL import Image

    seen = drawn(pictures, row, side).pixels
    if seen.shape[:2] == (side, side):
        return seen
    return np.asarray(Image.fromarray(seen).resize((side, side), reducing_gap=2.0))


def pixel_table(pictures: Pictures, side: int, cache: str | None) -> Pixels:
    """(N, side, side, 3) all pictures; from a file that is mapped into memory if there is a cache.

    Args:
        pictures: each of which is there.
        side: of the square, in pixels.
        cache: folder of the tables, None to keep none.

    Raises:
        DataError: see :func:`read_pixels`.
        ResourceError: if the folder cannot be written.
    """
    key = f"pixels {VERSION} {side} {pictures.digest}"
    shape = (len(pictures), side, side, 3)
    rows = ((row, read_pixels(pictures, row, side)) for row in range(len(pictures)))
    return kept_table(cache, key, lambda: Filling(shape, np.uint8, rows))


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


def kept_table(cache: str | None, key: str, make: Callable[[], Filling]) -> npt.NDArray[Any]:
    """A large array by what it was computed from; in memory only without a cache.

    Args:
        cache: folder, None to keep nothing.
        key: everything that decides the numbers.
        make: gives what the array is made of; not called if it is there.

    Raises:
        ResourceError: if the folder cannot be written.
    """
    if cache is None:
        filling = make()
        table = np.empty(filling.shape, filling.kind)
        _fill(table, filling.rows)
        return table
    path = Path(cache) / f"{hashlib.sha256(key.encode()).hexdigest()}.npy"
    if not path.is_file():
        _write(path, make())
    return np.load(path, mmap_mode="r")


def _write(path: Path, filling: Filling) -> None:
    """Fill a file, which appears whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        table = np.lib.format.open_memmap(draft, mode="w+", dtype=filling.kind, shape=filling.shape)
        _fill(table, filling.rows)
        table.flush()
        draft.replace(path)
    except OSError as error:
        raise ResourceError(f"cannot keep pictures in {path.parent}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _fill(table: npt.NDArray[Any], rows: Iterable[tuple[int, npt.NDArray[Any]]]) -> None:
    with bar("pictures"):
        for row, own in track(rows, len(table)):
            table[row] = own
            stopping.stop_if_requested()
