"""One pictogram for each COCO category, told apart by outline, pattern and hue."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from bias_pipeline.datasets.scenes.categories import CATEGORIES
from bias_pipeline.datasets.scenes.pixels.shapes import Kind, Shape

Colour = tuple[int, int, int]
DARK: Colour = (40, 40, 48)


class Icon(NamedTuple):
    """Shapes within the unit square, and the colour of each role."""

    shapes: tuple[Shape, ...]
    colours: tuple[Colour, ...]


# By supercategory; role 0 is the category's hue, 1 its second colour, 2 dark.
_OUTLINES: Mapping[str, tuple[Shape, ...]] = {
    "vehicle": (
        Shape("box", 0.5, 0.45, 1.0, 0.5),
        Shape("box", 0.5, 0.3, 0.5, 0.3, 1),
        Shape("ellipse", 0.22, 0.8, 0.3, 0.4, 2),
        Shape("ellipse", 0.78, 0.8, 0.3, 0.4, 2),
    ),
    "outdoor": (
        Shape("box", 0.5, 0.7, 0.24, 0.6, 2),
        Shape("ellipse", 0.5, 0.3, 0.9, 0.6),
    ),
    "animal": (
        Shape("ellipse", 0.45, 0.5, 0.8, 0.44),
        Shape("ellipse", 0.84, 0.3, 0.32, 0.4),
        Shape("box", 0.25, 0.8, 0.12, 0.4, 2),
        Shape("box", 0.65, 0.8, 0.12, 0.4, 2),
    ),
    "accessory": (
        Shape("ring", 0.5, 0.3, 0.6, 0.6, 2),
        Shape("box", 0.5, 0.65, 0.9, 0.7),
    ),
    "sports": (Shape("ellipse", 0.5, 0.5, 1.0, 0.7),),
    "kitchen": (
        Shape("box", 0.5, 0.6, 0.5, 0.8),
        Shape("ellipse", 0.5, 0.2, 0.8, 0.4, 1),
    ),
    "food": (Shape("ellipse", 0.5, 0.5, 1.0, 1.0),),
    "furniture": (
        Shape("box", 0.5, 0.35, 1.0, 0.4),
        Shape("box", 0.1, 0.75, 0.14, 0.5, 2),
        Shape("box", 0.9, 0.75, 0.14, 0.5, 2),
    ),
    "electronic": (
        Shape("box", 0.5, 0.5, 1.0, 0.9, 2),
        Shape("box", 0.5, 0.45, 0.8, 0.6),
    ),
    "appliance": (
        Shape("box", 0.5, 0.5, 1.0, 1.0),
        Shape("box", 0.8, 0.5, 0.1, 0.5, 2),
    ),
    "indoor": (Shape("triangle", 0.5, 0.5, 1.0, 1.0),),
}
_PATTERNS: tuple[Kind, ...] = ("stripes", "dots", "ellipse", "triangle", "box", "ring")


@cache
def icon(category: str) -> Icon:
    """The pictogram of a COCO category.

    Example:
        >>> icon("dog") == icon("cat"), len({icon(name) for name in CATEGORIES})
        (False, 80)
    """
    known = CATEGORIES[category]
    place = list(CATEGORIES).index(category)
    # Multiples of the golden ratio give neighbours distant hues.
    hue = _colour(place * 0.618034 % 1, 0.75, 0.9 - 0.2 * (place % 3))
    second = _colour((place * 0.618034 + 0.35) % 1, 0.6, 0.95)
    pattern = Shape(_PATTERNS[place % len(_PATTERNS)], 0.5, 0.48, 0.5, 0.32, 1)
    # People are drawn elsewhere; their icon is never used.
    outline = _OUTLINES.get(known.supercategory, ())
    return Icon((*outline, pattern), (hue, second, DARK))


def _colour(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = (round(255 * c) for c in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue
