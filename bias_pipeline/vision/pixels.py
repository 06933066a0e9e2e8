"""Pictures as arrays of one size, edits made, each read once for all who learn from it."""

from __future__ import annotations

import numpy as np

from bias_pipeline.corpus.pictures import Pictures, Pixels
from bias_pipeline.io.mapped_tables import Filling, mapped_table
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
        ResourceError: if the folder cannot be written, or the disk is full.
    """
    key = f"pixels {VERSION} {side} {pictures.digest}"
    shape = (len(pictures), side, side, 3)
    rows = ((row, read_pixels(pictures, row, side)) for row in range(len(pictures)))
    return mapped_table(cache, key, lambda: Filling(shape, np.uint8, rows))
