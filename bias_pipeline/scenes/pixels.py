"""Draws a scene as pixels, with pictograms of the place, things and people, and with masks.

Only an arbitrary mark on a person's figure shows the group. No stereotype is drawn. All figures
have the same outline, and the colours of clothes do not depend on the group. Each COCO category has
one pictogram, which differs from others by outline, pattern and hue. Each pixel is inside or
outside a shape, so no colour crosses an edge.
"""

from __future__ import annotations

import colorsys
import hashlib
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.corpus.pictures import PERSON, Drawn, Pixels, Region
from bias_pipeline.errors import UsageError
from bias_pipeline.scenes.scene import Box
from bias_pipeline.scenes.slots import GROUPS
from bias_pipeline.scenes.world import Image

Kind = Literal["box", "ellipse", "triangle", "ring", "stripes", "dots"]


@dataclass(frozen=True)
class Shape:
    """A shape within the unit square of its picture; y grows downwards."""

    kind: Kind  # `stripes` and `dots` are patterns that fill a box
    x: float  # of its centre
    y: float  # of its centre
    width: float  # before it is turned
    height: float  # before it is turned
    role: int = 0  # number of its colour in the picture, from 0
    turn: float = 0.0  # degrees, clockwise


@lru_cache(maxsize=16384)
def role_map(shapes: Sequence[Shape], height: int, width: int) -> npt.NDArray[np.int8]:
    """(height, width) the role of the uppermost shape at each pixel, or -1 without a shape.

    Example:
        >>> role_map((Shape("box", 0.5, 0.5, 0.5, 1.0),), 1, 4).tolist()
        [[-1, 0, 0, -1]]
    """
    y, x = np.mgrid[0:height, 0:width]
    x, y = (x + 0.5) / width, (y + 0.5) / height
    roles = np.full((height, width), -1, np.int8)
    for shape in shapes:
        roles[_covers(shape, x, y)] = shape.role
    roles.setflags(write=False)  # all callers get the same array
    return roles


def _covers(shape: Shape, x: Float64Array, y: Float64Array) -> BoolArray:
    angle = math.radians(shape.turn)
    cos, sin = math.cos(angle), math.sin(angle)
    across, down = x - shape.x, y - shape.y
    u = (across * cos + down * sin) / (shape.width / 2)
    v = (down * cos - across * sin) / (shape.height / 2)
    inside: BoolArray
    if shape.kind in ("ellipse", "ring"):
        radius = u**2 + v**2
        inside = (radius <= 1) & (radius >= (0.4 if shape.kind == "ring" else 0))
        return inside
    inside = (abs(u) <= 1) & (abs(v) <= 1)
    if shape.kind == "triangle":
        inside &= 2 * abs(u) <= v + 1
    elif shape.kind == "stripes":
        inside &= np.floor((v + 1) * 3) % 2 == 0
    elif shape.kind == "dots":
        inside &= (np.floor((u + 1) * 2.5) % 2 == 0) & (np.floor((v + 1) * 2.5) % 2 == 0)
    return inside


Colour = tuple[int, int, int]
DARK: Colour = (40, 40, 48)


class Icon(NamedTuple):
    """Shapes within the unit square, with the colour of each role."""

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
    # People are drawn as figures, so their icon is never used.
    outline = _OUTLINES.get(known.supercategory, ())
    return Icon((*outline, pattern), (hue, second, DARK))


def _colour(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = (round(255 * c) for c in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue


HEAD, BODY, LEGS, MARK = 0, 1, 2, 3  # roles; the marks of the attributes follow in their order
SKIN_TONE: Colour = (196, 178, 160)  # the same for all people, whatever their group
TROUSERS: Colour = (72, 76, 96)
UNTOLD: Colour = (128, 128, 128)  # the mark of an unsure group

# The place of each attribute's mark on the figure; the mark lies wholly inside the figure.
_PLACES: Mapping[str, tuple[float, float, float, float]] = {
    "gender": (0.5, 0.42, 0.32, 0.16),
    "skin": (0.5, 0.14, 0.24, 0.1),
    "age": (0.4, 0.8, 0.12, 0.2),
    "emotion": (0.6, 0.8, 0.12, 0.2),
}
# The colour of a group by its place among the attribute's groups: arbitrary, equally bright.
_COLOURS: tuple[Colour, ...] = (
    (240, 150, 20),
    (20, 170, 180),
    (180, 60, 200),
    (90, 180, 40),
    (230, 80, 80),
)


def figure(pose: float) -> tuple[Shape, ...]:
    """The shapes of a person within the unit square, with arms raised by ``pose`` degrees.

    Example:
        >>> len(figure(30.0))
        10
    """
    marks = (
        Shape("box", *_PLACES[attribute], role=MARK + place)
        for place, attribute in enumerate(GROUPS)
    )
    return (
        Shape("box", 0.24, 0.36, 0.14, 0.34, BODY, pose),
        Shape("box", 0.76, 0.36, 0.14, 0.34, BODY, -pose),
        Shape("box", 0.4, 0.8, 0.18, 0.4, LEGS),
        Shape("box", 0.6, 0.8, 0.18, 0.4, LEGS),
        Shape("box", 0.5, 0.44, 0.44, 0.4, BODY),
        Shape("ellipse", 0.5, 0.14, 0.38, 0.27, HEAD),
        *marks,
    )


def colours(body: Colour, labels: Mapping[str, str]) -> tuple[Colour, ...]:
    """The colours of a person's roles.

    Example:
        >>> len(colours((0, 0, 0), {"gender": "Male"}))
        7
    """
    return (SKIN_TONE, body, TROUSERS, *(mark_of(name, labels.get(name, "")) for name in GROUPS))


def mark_of(attribute: str, label: str) -> Colour:
    """The colour that represents a group in drawings."""
    groups = list(GROUPS[attribute])
    return _COLOURS[groups.index(label)] if label in groups else UNTOLD


VERSION = 1  # raise it whenever any pixel changes
SIDES = (32, 256)
_BEHIND = ("furniture", "vehicle", "appliance")  # people stand in front of these
_GROUNDS: Mapping[str, tuple[Colour, Colour]] = {  # by setting: colours above and below the horizon
    "sport": ((150, 190, 225), (110, 160, 90)),
    "street": ((165, 175, 190), (120, 120, 125)),
    "home": ((215, 205, 190), (150, 120, 95)),
}
_DYES: Mapping[str, Colour] = {
    "red": (190, 50, 50), "blue": (60, 80, 180), "black": (45, 45, 50), "white": (235, 235, 235),
    "green": (60, 140, 70), "yellow": (215, 195, 70), "brown": (125, 85, 55),
    "pink": (220, 140, 165), "purple": (120, 70, 150), "dark": (70, 65, 75),
    "bright": (245, 220, 130),
}  # fmt: skip


class _Thing(NamedTuple):
    box: Box
    shapes: tuple[Shape, ...]
    colours: tuple[Colour, ...]


@dataclass(frozen=True)
class SceneDrawing:
    """The picture of an image of ``scenes``; see :class:`~bias_pipeline.corpus.pictures.Drawing`.

    Example:
        >>> from bias_pipeline.scenes.world import generate
        >>> drawn = SceneDrawing(generate(1).images[0], "gender").draw(64)
        >>> drawn.pixels.shape, sorted(region.category for region in drawn.regions)
        ((64, 64, 3), ['handbag', 'person', 'train'])
    """

    image: Image  # the image to draw
    attribute: str  # the attribute whose mark extends beyond the figure
    # How far that mark extends beyond the figure's edge, as a share of the figure's width
    leak: float = 0.0

    @property
    def digest(self) -> str:
        image, scene = self.image, self.image.scene
        parts = (
            *(VERSION, self.leak, self.attribute if self.leak else "", image.id),
            *(image.layout, sorted(image.labels.items())),
            *(scene.activity.name, scene.place, scene.backdrop, scene.clothing_colour),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def draw(self, side: int) -> Drawn:
        """A square picture with sides of 32 to 256 pixels."""
        if not SIDES[0] <= side <= SIDES[1]:
            raise UsageError(
                f"scenes are drawn at {SIDES[0]} to {SIDES[1]} pixels, not {side}; set "
                f"encoder.side={SIDES[1]}, or with encoder=grit encoder.size=small"
            )
        pixels = self._ground(side)
        owner = np.full((side, side), -1, np.int16)
        things = list(self._things())
        for number, thing in enumerate(things):
            self._put(thing, number, pixels, owner)
        regions = (_region(thing.box.name, owner == n) for n, thing in enumerate(things))
        return Drawn(pixels, tuple(region for region in regions if region is not None))

    def _ground(self, side: int) -> Pixels:
        """Sky and floor in the tint of the place, and a band for the weather or background."""
        scene = self.image.scene
        sky, floor = _GROUNDS[scene.activity.setting]
        pixels = np.empty((side, side, 3), np.uint8)
        horizon = int(side * 0.45)
        pixels[:horizon] = _tint(sky, scene.backdrop[0])
        pixels[horizon:] = _tint(floor, scene.place[0])
        band, width = _number(scene.backdrop[0]) % 4, max(side // 16, 1)
        top = band * side // 10
        pixels[top : top + width] = _tint(sky, f"band {scene.backdrop[0]}")
        if _number(scene.place[0]) % 2:  # the floor of some places is tiled
            tile = max(side // 8, 2)
            pixels[horizon::tile] = _tint(floor, f"tile {scene.place[0]}")
        return pixels

    def _things(self) -> Iterator[_Thing]:
        boxes = self.image.layout
        behind = [box for box in boxes if _stands_behind(box)]
        people = [box for box in boxes if box.name == PERSON]
        before = [box for box in boxes if box.name != PERSON and not _stands_behind(box)]
        yield from map(_object, behind)
        scene = self.image.scene
        shapes = figure(15.0 * (_number(scene.activity.name) % 5))
        body = _DYES.get(scene.clothing_colour, _DYES["dark"])
        for box in people:
            yield _Thing(box, shapes, colours(body, self.image.labels))
        yield from map(_object, before)

    def _put(
        self, thing: _Thing, number: int, pixels: Pixels, owner: npt.NDArray[np.int16]
    ) -> None:
        """Draw an object over the others, and its mark beside it if the mark extends beyond it."""
        side = len(pixels)
        left, top = int(thing.box.x * side), int(thing.box.y * side)
        right = min(max(round((thing.box.x + thing.box.width) * side), left + 1), side)
        bottom = min(max(round((thing.box.y + thing.box.height) * side), top + 1), side)
        rows, columns = slice(top, bottom), slice(left, right)
        roles = role_map(thing.shapes, rows.stop - rows.start, columns.stop - columns.start)
        ink = roles >= 0
        if self.leak and thing.box.name == PERSON:
            # The mark next to the figure, which no person's mask covers
            width = max(round(self.leak * (columns.stop - columns.start)), 1)
            label = self.image.labels.get(self.attribute, "")
            around = slice(max(columns.start - width, 0), columns.stop + width)
            below = slice((rows.start + rows.stop) // 2, rows.stop)
            pixels[below, around] = mark_of(self.attribute, label)
        pixels[rows, columns][ink] = np.array(thing.colours, np.uint8)[roles[ink]]
        owner[rows, columns][ink] = number


def _object(box: Box) -> _Thing:
    sprite = icon(box.name)
    return _Thing(box, sprite.shapes, sprite.colours)


def _stands_behind(box: Box) -> bool:
    return CATEGORIES[box.name].supercategory in _BEHIND


def _region(category: str, mask: BoolArray) -> Region | None:
    """The visible part of an object, or None if it is hidden."""
    from pycocotools import mask as coco

    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    left, top = int(columns[0]), int(rows[0])
    width, height = int(columns[-1]) - left + 1, int(rows[-1]) - top + 1
    counts = coco.encode(np.asfortranarray(mask, np.uint8))["counts"]
    return Region(
        category, (left, top, width, height), (mask.shape[0], mask.shape[1]), counts=counts
    )


def _tint(colour: Colour, name: str) -> Colour:
    """A colour that is changed slightly, depending on the name."""
    number = _number(name)
    moves = ((number >> shift) % 61 - 30 for shift in (0, 8, 16))
    red, green, blue = (min(max(c + move, 0), 255) for c, move in zip(colour, moves, strict=True))
    return red, green, blue


def _number(name: str) -> int:
    """A number derived from a name, equal on every platform."""
    return zlib.crc32(name.encode())
