"""The pixels of a picture, from a file or a drawing, with all edits applied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.pictures import Drawn, Elsewhere, Pictures, Region
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.vision.photos import UnreadableError, photo_size, read_photo

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
    size = (photo.height, photo.width)
    known = sized(regions or (), size)
    for one in known:
        _check_shape(file, one.size, size)
    return Drawn(np.asarray(photo), known)


def sized(regions: Iterable[Region], size: tuple[int, int]) -> tuple[Region, ...]:
    """Regions with the size of their picture; those without one get the file's.

    Args:
        regions: of one picture.
        size: height and width of its file.

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

    Raises:
        DataError: if they cannot belong to this picture.
    """
    ratio = annotated[1] * actual[0] / (annotated[0] * actual[1])
    if annotated != (1, 1) and not 1 / _STRETCH <= ratio <= _STRETCH:
        raise DataError(
            f"{file}: its annotations are of {annotated[1]} x {annotated[0]} pixels, another "
            f"shape than {actual[1]} x {actual[0]}; name the annotations of these pictures "
            "(dataset.regions)"
        )
