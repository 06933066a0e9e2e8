"""Pictures as arrays of one size, edits made, each read once for all who learn from it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.pictures import Drawn, Pictures, Pixels
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io import stopping
from bias_pipeline.io.progress import bar, track
from bias_pipeline.vision.photos import UnreadableError, read_photo

VERSION = 1  # raise it whenever any pixel changes
_STRETCH = 1.1  # by which a small picture's sides may be rounded


def read_pixels(pictures: Pictures, row: int, side: int) -> Pixels:
    """(side, side, 3) one picture, squeezed into a square, with its edits made.

    Raises:
        DataError: if the file cannot be read, naming it, or an annotation is none.
    """
    file = pictures.files[row]
    if file is None:
        raise DataError(f"picture {row} of {len(pictures)} is absent")
    drawn = _photo(pictures, row, file, side) if isinstance(file, Path) else file.draw(side)
    try:
        for edit in pictures.edits:
            drawn = Drawn(edit.apply(drawn), drawn.regions)
    except ValueError as error:
        raise DataError(f"{file}: a mask in its annotations cannot be used: {error}") from error
    return drawn.pixels


def _photo(pictures: Pictures, row: int, file: Path, side: int) -> Drawn:
    try:
        photo = read_photo(file)
    except UnreadableError as error:
        raise DataError(
            f"{file}: {error}; mend or remove it (a picture that is absent is not scored with "
            "dataset.strict=false)"
        ) from error
    own = (photo.height, photo.width)
    regions = tuple(
        one if all(one.size) else replace(one, size=own) for one in pictures.known(row) or ()
    )
    for one in regions:
        _check_shape(file, one.size, own)
    small = photo.resize((side, side), reducing_gap=2.0)
    return Drawn(np.asarray(small), regions)


def _check_shape(file: Path, annotated: tuple[int, int], own: tuple[int, int]) -> None:
    """Refuse annotations of another picture; a scaled one may be off by rounding.

    Raises:
        DataError: if they cannot be of this one.
    """
    ratio = annotated[1] * own[0] / (annotated[0] * own[1])
    if not 1 / _STRETCH <= ratio <= _STRETCH:
        raise DataError(
            f"{file}: its annotations are of {annotated[1]} x {annotated[0]} pixels, which is "
            f"another shape than {own[1]} x {own[0]}; name the annotations of these pictures "
            "(dataset.regions)"
        )


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
