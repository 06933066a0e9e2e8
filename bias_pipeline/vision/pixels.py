"""Pictures as arrays of one size, with edits applied; each is read once."""

from __future__ import annotations

import numpy as np

from bias_pipeline.corpus.pictures import Pictures, Pixels
from bias_pipeline.io.mapped_tables import Filling, mapped_table
from bias_pipeline.vision.drawn import drawn

VERSION = 1  # raise it whenever any pixel changes


def read_pixels(pictures: Pictures, row: int, side: int) -> Pixels:
    """(side, side, 3) one picture with its edits applied, resized to a square.

    Raises:
        DataError: see :func:`~bias_pipeline.vision.drawn.drawn`.
    """
    from PIL import Image

    pixels = drawn(pictures, row, side).pixels
    if pixels.shape[:2] == (side, side):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((side, side), reducing_gap=2.0))


def pixel_table(pictures: Pictures, side: int, cache: str | None) -> Pixels:
    """(N, side, side, 3) all pictures; memory-mapped from a file if there is a cache.

    Args:
        pictures: all must exist.
        side: of the square, in pixels.
        cache: folder that caches the tables, None for no cache.

    Raises:
        DataError: see :func:`read_pixels`.
        ResourceError: if the folder cannot be written, or the disk is full.
    """
    key = f"pixels {VERSION} {side} {pictures.digest}"
    shape = (len(pictures), side, side, 3)
    rows = ((row, read_pixels(pictures, row, side)) for row in range(len(pictures)))
    return mapped_table(cache, key, lambda: Filling(shape, np.uint8, rows))
