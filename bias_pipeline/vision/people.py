"""Crops pictures to the person."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from bias_pipeline.corpus.pictures import PERSON, Pictures, Region
from bias_pipeline.vision.drawn import drawn

if TYPE_CHECKING:
    from PIL.Image import Image

Crop = Literal["person", "none"]

VERSION = 1  # raise it whenever any pixel changes
_DRAWN = 128  # pixels a side of drawings
_GREY = (127, 127, 127)


def crop_person(pictures: Pictures, row: int, crop: Crop) -> Image:
    """One picture, or its largest person's box, padded with grey to a square.

    A picture without annotated people is not cropped: data sets of faces have only faces.

    Args:
        pictures: with the row's.
        row: of the picture.
        crop: ``person`` or ``none``.

    Raises:
        DataError: see :func:`~bias_pipeline.vision.drawn.drawn`.
    """
    from PIL import Image

    picture = drawn(pictures, row, _DRAWN)
    whole = Image.fromarray(picture.pixels)
    person = largest_person(picture.regions) if crop == "person" else None
    return whole if person is None else _squared(whole, person)


def largest_person(regions: Sequence[Region]) -> Region | None:
    """The person with the largest box, None if there is none.

    Example:
        >>> small, large = (Region("person", (0, 0, side, side), (9, 9)) for side in (2, 5))
        >>> largest_person((small, large)).box
        (0, 0, 5, 5)
    """
    people = [region for region in regions if region.category == PERSON]
    return max(people, key=lambda region: region.box[2] * region.box[3], default=None)


def _squared(whole: Image, person: Region) -> Image:
    """A person's box, scaled from the annotated size, in the middle of a square."""
    from PIL import Image

    rows, columns = person.size
    left, top, wide, high = person.box
    across, down = whole.width / columns, whole.height / rows
    first = (max(int(left * across), 0), max(int(top * down), 0))
    last = (
        min(max(round((left + wide) * across), first[0] + 1), whole.width),
        min(max(round((top + high) * down), first[1] + 1), whole.height),
    )
    cut = whole.crop((*first, *last))
    side = max(cut.size)
    square = Image.new("RGB", (side, side), _GREY)
    square.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
    return square


def crop_cache_key(pictures: Pictures, row: int, crop: Crop) -> str:
    """A digest of all that decides :func:`crop_person`: content, edits and the person's box."""
    edits = [sorted(edit.spec.items()) for edit in pictures.edits]
    place = pictures.known(row) if crop == "person" else None
    parts = (VERSION, crop, pictures.contents[row], edits, place)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
