"""A scene as pixels: the place, the things in it, and the people, each with its mask."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.pictures import PERSON, Drawn, Pixels, Region
from bias_pipeline.datasets.scenes.categories import CATEGORIES
from bias_pipeline.datasets.scenes.layout import Box
from bias_pipeline.datasets.scenes.pixels.figure import colours, figure, mark_of
from bias_pipeline.datasets.scenes.pixels.icons import Colour, icon
from bias_pipeline.datasets.scenes.pixels.shapes import Shape, inked
from bias_pipeline.datasets.scenes.world import Image
from bias_pipeline.errors import UsageError

VERSION = 1  # raise it whenever any pixel changes
SIDES = (32, 256)
_BEHIND = ("furniture", "vehicle", "appliance")  # people stand in front of these
_GROUNDS: Mapping[str, tuple[Colour, Colour]] = {  # by setting: above and below the horizon
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
    """An object to draw into a box."""

    box: Box
    shapes: tuple[Shape, ...]
    colours: tuple[Colour, ...]


@dataclass(frozen=True)
class SceneDrawing:
    """The picture of an image of ``scenes``; see :class:`~bias_pipeline.corpus.pictures.Drawing`.

    Attributes:
        image: the image to draw.
        attribute: whose mark extends beyond the figure.
        leak: how far that mark extends beyond the figure's edge, as a share of the figure's width.

    Example:
        >>> from bias_pipeline.datasets.scenes.world import generate
        >>> drawn = SceneDrawing(generate(1).images[0], "gender").draw(64)
        >>> drawn.pixels.shape, sorted(region.category for region in drawn.regions)
        ((64, 64, 3), ['handbag', 'person', 'train'])
    """

    image: Image
    attribute: str
    leak: float = 0.0

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of all that decides the pixels."""
        image, scene = self.image, self.image.scene
        parts = (
            *(VERSION, self.leak, self.attribute if self.leak else "", image.id),
            *(image.layout, sorted(image.labels.items())),
            *(scene.activity.name, scene.place, scene.backdrop, scene.clothing_colour),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def draw(self, side: int) -> Drawn:
        """A square picture of 32 to 256 pixels a side.

        Raises:
            UsageError: if the side is out of its range.
        """
        if not SIDES[0] <= side <= SIDES[1]:
            raise UsageError(f"scenes are drawn at {SIDES[0]} to {SIDES[1]} pixels, not {side}")
        pixels = self._ground(side)
        owner = np.full((side, side), -1, np.int16)
        things = list(self._things())
        for number, thing in enumerate(things):
            self._put(thing, number, pixels, owner)
        regions = (_region(thing.box.name, owner == n) for n, thing in enumerate(things))
        return Drawn(pixels, tuple(region for region in regions if region is not None))

    def _ground(self, side: int) -> Pixels:
        """Sky and floor in the place's own tint, and a band for the weather or background."""
        scene = self.image.scene
        sky, floor = _GROUNDS[scene.activity.setting]
        pixels = np.empty((side, side, 3), np.uint8)
        horizon = int(side * 0.45)
        pixels[:horizon] = _tinted(sky, scene.backdrop[0])
        pixels[horizon:] = _tinted(floor, scene.place[0])
        band, width = _number(scene.backdrop[0]) % 4, max(side // 16, 1)
        top = band * side // 10
        pixels[top : top + width] = _tinted(sky, f"band {scene.backdrop[0]}")
        if _number(scene.place[0]) % 2:  # the floor of some places is tiled
            tile = max(side // 8, 2)
            pixels[horizon::tile] = _tinted(floor, f"tile {scene.place[0]}")
        return pixels

    def _things(self) -> Iterator[_Thing]:
        """The objects to draw, from back to front."""
        boxes = self.image.layout
        behind = [box for box in boxes if _stands_behind(box)]
        people = [box for box in boxes if box.name == PERSON]
        before = [box for box in boxes if box.name != PERSON and not _stands_behind(box)]
        yield from map(_object, behind)
        yield from map(self._person, people)
        yield from map(_object, before)

    def _person(self, box: Box) -> _Thing:
        scene = self.image.scene
        pose = 15.0 * (_number(scene.activity.name) % 5)
        body = _DYES.get(scene.clothing_colour, _DYES["dark"])
        return _Thing(box, figure(pose), colours(body, self.image.labels))

    def _put(
        self, thing: _Thing, number: int, pixels: Pixels, owner: npt.NDArray[np.int16]
    ) -> None:
        """Draw an object over the others, and its mark around it if it extends beyond."""
        rows, columns = _span(thing.box, len(pixels))
        roles = inked(thing.shapes, rows.stop - rows.start, columns.stop - columns.start)
        ink = roles >= 0
        if self.leak and thing.box.name == PERSON:
            self._spill(thing, pixels, rows, columns)
        pixels[rows, columns][ink] = np.array(thing.colours, np.uint8)[roles[ink]]
        owner[rows, columns][ink] = number

    def _spill(self, thing: _Thing, pixels: Pixels, rows: slice, columns: slice) -> None:
        """Paint the mark next to the figure; no person's mask covers it."""
        width = max(round(self.leak * (columns.stop - columns.start)), 1)
        label = self.image.labels.get(self.attribute, "")
        around = slice(max(columns.start - width, 0), columns.stop + width)
        below = slice((rows.start + rows.stop) // 2, rows.stop)
        pixels[below, around] = mark_of(self.attribute, label)


def _object(box: Box) -> _Thing:
    sprite = icon(box.name)
    return _Thing(box, sprite.shapes, sprite.colours)


def _stands_behind(box: Box) -> bool:
    return CATEGORIES[box.name].supercategory in _BEHIND


def _span(box: Box, side: int) -> tuple[slice, slice]:
    """Rows and columns of a box, at least one pixel each way."""
    left, top = int(box.x * side), int(box.y * side)
    right = min(max(round((box.x + box.width) * side), left + 1), side)
    bottom = min(max(round((box.y + box.height) * side), top + 1), side)
    return slice(top, bottom), slice(left, right)


def _region(category: str, mask: BoolArray) -> Region | None:
    """The visible part of an object, None if it is hidden."""
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


def _tinted(colour: Colour, name: str) -> Colour:
    """A colour changed a little, depending on the name."""
    number = _number(name)
    moves = ((number >> shift) % 61 - 30 for shift in (0, 8, 16))
    red, green, blue = (min(max(c + move, 0), 255) for c, move in zip(colour, moves, strict=True))
    return red, green, blue


def _number(name: str) -> int:
    """A number derived from a name, equal on every platform."""
    return zlib.crc32(name.encode())
