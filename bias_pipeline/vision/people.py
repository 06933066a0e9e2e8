"""The person of a picture by itself, for models that are asked who somebody is."""

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
_DRAWN = 128  # pixels a side of what is drawn
_GREY = (127, 127, 127)


def look(pictures: Pictures, row: int, crop: Crop) -> Image:
    """One picture, or the person in it: the box of the largest one, grey around it to a square.

    A picture of which nobody knows where people are is shown whole: those of data sets of faces
    show nothing else.

    Args:
        pictures: with the row's.
        row: which one.
        crop: ``person`` or ``none``.

    Raises:
        DataError: see :func:`~bias_pipeline.vision.drawn.drawn`.
    """
    from PIL import Image

    seen = drawn(pictures, row, _DRAWN)
    whole = Image.fromarray(seen.pixels)
    person = largest_person(seen.regions) if crop == "person" else None
    return whole if person is None else _squared(whole, person)


def largest_person(regions: Sequence[Region]) -> Region | None:
    """The person with the largest box, None if there is none.

    Example:
        >>> small, large = (Region("person", (0, 0, side, side), (9, 9)) for side in (2, 5))
        >>> largest_person((small, large)).box
        (0, 0, 5, 5)
    """
    people = [own for own in regions if own.category == PERSON]
    return max(people, key=lambda own: own.box[2] * own.box[3], default=None)


def _squared(whole: Image, person: Region) -> Image:
    """The box of a person, which may be annotated in another size, in the middle of a square."""
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


def look_key(pictures: Pictures, row: int, crop: Crop) -> str:
    """All that decides what :func:`look` shows: content, edits and, of a person, the place."""
    edits = [sorted(own.spec.items()) for own in pictures.edits]
    place = pictures.known(row) if crop == "person" else None
    told = (VERSION, crop, pictures.contents[row], edits, place)
    return hashlib.sha256(repr(told).encode()).hexdigest()
