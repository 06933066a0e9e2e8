"""Pictures of the affective world: its motifs as pictograms, and nothing else of the emotion."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.corpus.pictures import Drawn, Pixels
from bias_pipeline.scenes.affect_world import MOTIFS, SLOTS, AffectImage
from bias_pipeline.scenes.pixels import Colour, Icon, Kind, Shape, icon, inked
from bias_pipeline.scenes.world import uniforms

_VERSION = 1  # raise it whenever a picture changes

_PALETTE: dict[str, Colour] = {
    "blue": (70, 110, 200),
    "brown": (120, 85, 50),
    "red": (200, 50, 45),
    "yellow": (235, 215, 80),
    "black": (35, 35, 40),
    "green": (80, 150, 80),
    "gray": (130, 130, 135),
    "white": (235, 235, 230),
    "golden": (205, 160, 50),
    "pink": (240, 160, 185),
    "purple": (130, 70, 160),
}
_PATTERNS: tuple[Kind, ...] = ("box", "stripes", "dots", "ellipse", "triangle")
# Left, top, width and height of each motif but the colour, which is the ground.
_PLACES = {
    "light": (0.0, 0.0, 1.0, 0.25),
    "stroke": (0.0, 0.8, 1.0, 0.2),
    "gesture": (0.04, 0.32, 0.3, 0.42),
    "subject": (0.44, 0.3, 0.46, 0.46),
}
_JITTER = 0.08  # of the subject and the gesture
_ICONS = [name for name, category in CATEGORIES.items() if category.supercategory != "person"]


@dataclass(frozen=True)
class AffectDrawing:
    """A picture of the affective world.

    Example:
        >>> from bias_pipeline.scenes.affect_world import affect_world
        >>> drawn = AffectDrawing(affect_world(1, 0)[0]).draw(64)
        >>> drawn.pixels.shape, drawn.regions
        ((64, 64, 3), ())
    """

    image: AffectImage  # what is drawn

    @property
    def digest(self) -> str:
        """Of its motifs and where they are."""
        shown = sorted(self.image.motifs.items())
        text = f"affect {_VERSION} {self.image.seed} {self.image.key} {shown}"
        return hashlib.sha256(text.encode()).hexdigest()

    def draw(self, side: int) -> Drawn:
        """A square of ``side`` x ``side`` pixels, without regions: nothing in it is a person."""
        motifs = self.image.motifs
        pixels = np.empty((side, side, 3), np.uint8)
        pixels[:] = _PALETTE[SLOTS["colour"].options[motifs["colour"]]]
        move = uniforms(self.image.seed, [self.image.key], 0, ["affect x", "affect y"])[0]
        for name in MOTIFS[1:]:
            left, top, width, height = _PLACES[name]
            if name in ("subject", "gesture"):
                left, top = left + _JITTER * (move[0] - 0.5), top + _JITTER * (move[1] - 0.5)
            start = round(max(left, 0) * side), round(max(top, 0) * side)
            _put(pixels, _pictogram(name, motifs[name]), start, (width, height))
        return Drawn(pixels, ())


def _put(pixels: Pixels, shown: Icon, start: tuple[int, int], size: tuple[float, float]) -> None:
    """Draw a pictogram, whose left upper corner is given in pixels, its size as shares."""
    side = len(pixels)
    width, height = (max(round(length * side), 1) for length in size)
    view = pixels[start[1] : start[1] + height, start[0] : start[0] + width]
    roles = inked(shown.shapes, *view.shape[:2])
    ink = roles >= 0
    view[ink] = np.array(shown.colours, np.uint8)[roles[ink]]


def _pictogram(slot: str, number: int) -> Icon:
    """The pictogram of an option."""
    offset = list(_PLACES).index(slot)
    whole = icon(_ICONS[(offset + 4 * number) % len(_ICONS)])
    if slot in ("subject", "gesture"):
        return whole
    pattern = Shape(_PATTERNS[number % len(_PATTERNS)], 0.5, 0.5, 1.0, 1.0, 1)
    return Icon((Shape("box", 0.5, 0.5, 1.0, 1.0), pattern), whole.colours)
