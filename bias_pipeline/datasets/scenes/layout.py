"""Places objects in a picture: boxes, from which COCO instances and pixels are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bias_pipeline.datasets.scenes.categories import CATEGORIES

SIZES = ((640, 480), (640, 427), (480, 640), (612, 612))  # width, height in pixels

_PERSON = (0.24, 0.62)  # width and height of a person as shares of the picture
_SCALES = {
    "vehicle": (0.42, 0.3),
    "outdoor": (0.16, 0.24),
    "animal": (0.24, 0.22),
    "accessory": (0.12, 0.16),
    "sports": (0.16, 0.1),
    "kitchen": (0.07, 0.1),
    "food": (0.14, 0.1),
    "furniture": (0.44, 0.3),
    "electronic": (0.14, 0.1),
    "appliance": (0.2, 0.26),
    "indoor": (0.12, 0.12),
}


class Box(NamedTuple):
    """One object in a picture.

    Attributes:
        name: COCO category name.
        x: left edge, a share of the picture's width, in [0, 1].
        y: upper edge, a share of the picture's height, in [0, 1].
        width: a share of the picture's width; x + width <= 1.
        height: a share of the picture's height; y + height <= 1.
    """

    name: str
    x: float
    y: float
    width: float
    height: float


def lay_out(people: int, objects: Iterable[str], draws: Mapping[str, float]) -> tuple[Box, ...]:
    """Place people side by side and objects around them.

    Args:
        people: how many, at least 1.
        objects: COCO category names other than "person".
        draws: numbers in [0, 1) by purpose, see :data:`PURPOSES`.

    Returns:
        The boxes, people first, then objects by name.

    Example:
        >>> draws = dict.fromkeys(PURPOSES, 0.5)
        >>> [box.name for box in lay_out(1, {"dog"}, draws)]
        ['person', 'dog']
    """
    spread = 0.7 / people
    boxes = [
        _box(
            "person",
            _PERSON,
            0.05 + i * spread + 0.1 * draws["person_x"],
            0.3,
            draws["person_size"],
        )
        for i in range(people)
    ]
    for i, name in enumerate(sorted(objects)):
        scale = _SCALES[CATEGORIES[name].supercategory]
        u = draws[f"box {i}"]
        boxes.append(_box(name, scale, u, 0.4 + 0.5 * draws["ground"], (u * 7) % 1))
    return tuple(boxes)


MAX_OBJECTS = 6
PURPOSES = ("person_x", "person_size", "ground", *(f"box {i}" for i in range(MAX_OBJECTS)))


def _box(name: str, scale: tuple[float, float], x: float, y: float, size: float) -> Box:
    """A box of about the given scale, moved into the picture."""
    width, height = (round(side * (0.75 + 0.5 * size), 3) for side in scale)
    left, top = round(min(x, 1 - width), 3), round(min(y, 1 - height), 3)
    return Box(name, left, top, width, height)
