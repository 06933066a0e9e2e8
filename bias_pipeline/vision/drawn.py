"""A picture as it is seen: a file's or a drawing's pixels, with all edits made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.pictures import Drawn, Elsewhere, Pictures, Region
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.vision.photos import UnreadableError, photo_size, read_photo

_STRETCH = 1.1  # by which a small picture's sides may be rounded


def drawn(pictures: Pictures, row: int, side: int) -> Drawn:
    """One picture with its edits made, and what is where in it.

    A file is edited in its own size: whoever squeezes it first mixes what is masked into the pixels
    around the mask.

    Args:
        pictures: with the row's.
        row: which one.
        side: pixels a side of what is drawn on the spot; files have their own size.

    Raises:
        DataError: if the file cannot be read, naming it, or an annotation is none.
        NotApplicableError: if the picture is elsewhere.
    """
    file = pictures.files[row]
    if file is None:
        raise DataError(f"picture {row} of {len(pictures)} is absent")
    if isinstance(file, Elsewhere):
        raise NotApplicableError(
            "nobody has the pictures at hand, only what is where in them (dataset.regions); name "
            "their folder (dataset.images=DIR), or choose encoder.backbone=boxes, which sees no "
            "more than that"
        )
    found = _photo(file, pictures.known(row)) if isinstance(file, Path) else file.draw(side)
    try:
        for edit in pictures.edits:
            found = Drawn(edit.apply(found), found.regions)
    except ValueError as error:
        raise DataError(f"{file}: a mask in its annotations cannot be used: {error}") from error
    return found


def _photo(file: Path, regions: Iterable[Region] | None) -> Drawn:
    try:
        photo = read_photo(file)
    except UnreadableError as error:
        raise DataError(
            f"{file}: {error}; mend or remove it (a picture that is absent is not scored with "
            "dataset.strict=false)"
        ) from error
    own = (photo.height, photo.width)
    known = sized(regions or (), own)
    for one in known:
        _check_shape(file, one.size, own)
    return Drawn(np.asarray(photo), known)


def sized(regions: Iterable[Region], size: tuple[int, int]) -> tuple[Region, ...]:
    """Regions that know the size of their picture: those that did not take the file's.

    Args:
        regions: of one picture.
        size: height and width of its file.

    Example:
        >>> sized([Region("dog", (0, 0, 1, 1), (0, 0))], (2, 3))[0].size
        (2, 3)
    """
    return tuple(one if all(one.size) else replace(one, size=size) for one in regions)


def in_size(regions: tuple[Region, ...], file: Path | Elsewhere) -> tuple[Region, ...]:
    """The same, the file being opened only where it is needed and at hand."""
    if isinstance(file, Elsewhere) or all(all(own.size) for own in regions):
        return regions
    return sized(regions, photo_size(file))


def _check_shape(file: Path, annotated: tuple[int, int], own: tuple[int, int]) -> None:
    """Refuse annotations of another picture; a scaled one may be off by rounding.

    Boxes in shares of a picture, which are of size (1, 1), tell no shape.

    Raises:
        DataError: if they cannot be of this one.
    """
    ratio = annotated[1] * own[0] / (annotated[0] * own[1])
    if annotated != (1, 1) and not 1 / _STRETCH <= ratio <= _STRETCH:
        raise DataError(
            f"{file}: its annotations are of {annotated[1]} x {annotated[0]} pixels, which is "
            f"another shape than {own[1]} x {own[0]}; name the annotations of these pictures "
            "(dataset.regions)"
        )
