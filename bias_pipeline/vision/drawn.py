"""The pixels of pictures, from files or drawings, with edits applied; thumbnails for reports."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.corpus.pictures import Drawn, Elsewhere, Pictures, Pixels, Region
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.io.arrays import Filling, mapped_table
from bias_pipeline.vision.photos import UnreadableError, photo_size, read_photo

if TYPE_CHECKING:
    from PIL.Image import Image

_STRETCH = 1.1  # rounding tolerance for sides of small pictures


def drawn(pictures: Pictures, row: int, side: int) -> Drawn:
    """One picture with its edits applied, and its regions.

    A file is edited in its original size: resizing first would mix masked pixels into their
        surroundings.

    Args:
        pictures: with the row's.
        row: of the picture.
        side: pixels a side of drawings; files have their own size.

    Raises:
        DataError: if the file cannot be read or an annotation is broken.
        NotApplicableError: if the picture's file is missing.
    """
    file = pictures.files[row]
    if file is None:
        raise DataError(f"picture {row} of {len(pictures)} is absent")
    if isinstance(file, Elsewhere):
        raise NotApplicableError(
            "there are no pictures, only regions (dataset.regions); name their folder "
            "(dataset.images=DIR), or choose encoder.backbone=boxes, which needs only regions"
        )
    picture = _photo(file, pictures.known(row)) if isinstance(file, Path) else file.draw(side)
    try:
        for edit in pictures.edits:
            picture = Drawn(edit.apply(picture), picture.regions)
    except ValueError as error:
        raise DataError(f"{file}: a mask in its annotations cannot be used: {error}") from error
    return picture


def _photo(file: Path, regions: Iterable[Region] | None) -> Drawn:
    try:
        photo = read_photo(file)
    except UnreadableError as error:
        raise DataError(
            f"{file}: {error}; repair or remove it (with dataset.strict=false an absent picture "
            "is not scored)"
        ) from error
    return with_regions(file, photo, regions or ())


def with_regions(file: Path, photo: Image, regions: Iterable[Region]) -> Drawn:
    """A photo's pixels and regions."""
    size = (photo.height, photo.width)
    known = sized(regions, size)
    for one in known:
        _check_shape(file, one.size, size)
    return Drawn(np.asarray(photo), known)


def sized(regions: Iterable[Region], size: tuple[int, int]) -> tuple[Region, ...]:
    """Regions with the size of their picture; those without one get the file's.

    Example:
        >>> sized([Region("dog", (0, 0, 1, 1), (0, 0))], (2, 3))[0].size
        (2, 3)
    """
    return tuple(one if all(one.size) else replace(one, size=size) for one in regions)


def in_size(regions: tuple[Region, ...], file: Path | Elsewhere) -> tuple[Region, ...]:
    """The same; the file is opened only if needed and present."""
    if isinstance(file, Elsewhere) or all(all(region.size) for region in regions):
        return regions
    return sized(regions, photo_size(file))


def _check_shape(file: Path, annotated: tuple[int, int], actual: tuple[int, int]) -> None:
    """Refuse annotations of another picture; a scaled one may be off by rounding.

    Boxes in shares of a picture (size (1, 1)) have no shape to check.
    """
    ratio = annotated[1] * actual[0] / (annotated[0] * actual[1])
    if annotated != (1, 1) and not 1 / _STRETCH <= ratio <= _STRETCH:
        raise DataError(
            f"{file}: its annotations are of {annotated[1]} x {annotated[0]} pixels, another "
            f"shape than {actual[1]} x {actual[0]}; name the annotations of these pictures "
            "(dataset.regions)"
        )


VERSION = 1  # raise it whenever any pixel changes


def read_pixels(pictures: Pictures, row: int, side: int) -> Pixels:
    """(side, side, 3) one picture with its edits applied, resized to a square."""
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
    """
    key = f"pixels {VERSION} {side} {pictures.digest}"
    shape = (len(pictures), side, side, 3)
    rows = ((row, read_pixels(pictures, row, side)) for row in range(len(pictures)))
    return mapped_table(cache, key, lambda: Filling(shape, np.uint8, rows))


SIDE = 64  # pixels
MOST_SIGNS = 12_000  # of one; noise of this size comes to some 7,000
_QUALITY = 80
_GROUND = "white"
_SIGNS = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def thumbnail(picture: Image) -> str:
    """A picture within a square of :data:`SIDE` pixels, as a JPEG in base64.

    Args:
        picture: of any size; metadata is left out.

    Example:
        >>> from PIL import Image
        >>> read_thumbnail(thumbnail(Image.new("RGB", (300, 200), "red"))).size
        (64, 64)
    """
    from PIL import Image

    small = picture.convert("RGB")
    small.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    square = Image.new("RGB", (SIDE, SIDE), _GROUND)
    square.paste(small, ((SIDE - small.width) // 2, (SIDE - small.height) // 2))
    return jpeg(square)


def jpeg(picture: Image) -> str:
    """A picture as a JPEG in base64, without metadata."""
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=_QUALITY, exif=b"")
    return base64.b64encode(content.getvalue()).decode("ascii")


def read_thumbnail(text: str) -> Image:
    """The picture that :func:`thumbnail` wrote.

    Raises:
        DataError: if it is anything else.

    Example:
        >>> read_thumbnail("<script>")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.DataError: no JPEG of 64 x 64 pixels
    """
    from PIL import Image

    try:
        if len(text) > MOST_SIGNS or not _SIGNS.fullmatch(text):
            raise ValueError
        image = Image.open(io.BytesIO(base64.b64decode(text, validate=True)), formats=["JPEG"])
        if image.size != (SIDE, SIDE):
            raise ValueError
        return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, binascii.Error) as error:
        raise DataError(f"no JPEG of {SIDE} x {SIDE} pixels") from error
