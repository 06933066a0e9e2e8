"""People as pictograms.

Only an arbitrary mark on the figure shows the group. No stereotype is drawn: all figures have the
same outline, and their colours come from clothes whose colour is independent of group.
"""

from __future__ import annotations

from collections.abc import Mapping

from bias_pipeline.datasets.scenes.pixels.icons import Colour
from bias_pipeline.datasets.scenes.pixels.shapes import Shape
from bias_pipeline.datasets.scenes.slots import GROUPS

HEAD, BODY, LEGS, MARK = 0, 1, 2, 3  # roles; the marks of the attributes follow in their order
SKIN_TONE: Colour = (196, 178, 160)  # of everyone: independent of group
TROUSERS: Colour = (72, 76, 96)
UNTOLD: Colour = (128, 128, 128)  # the mark of an unsure group

# Where on the figure the mark of each attribute is, wholly inside it.
_PLACES: Mapping[str, tuple[float, float, float, float]] = {
    "gender": (0.5, 0.42, 0.32, 0.16),
    "skin": (0.5, 0.14, 0.24, 0.1),
    "age": (0.4, 0.8, 0.12, 0.2),
    "emotion": (0.6, 0.8, 0.12, 0.2),
}
# Group by its place among those of its attribute: arbitrary, and equally bright.
_COLOURS: tuple[Colour, ...] = (
    (240, 150, 20),
    (20, 170, 180),
    (180, 60, 200),
    (90, 180, 40),
    (230, 80, 80),
)


def figure(pose: float) -> tuple[Shape, ...]:
    """The shapes of a person within the unit square.

    Args:
        pose: degrees by which the arms are raised.

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

    Args:
        body: of the clothes.
        labels: attribute to group, another word if unsure.

    Example:
        >>> len(colours((0, 0, 0), {"gender": "Male"}))
        7
    """
    return (SKIN_TONE, body, TROUSERS, *(mark_of(name, labels.get(name, "")) for name in GROUPS))


def mark_of(attribute: str, label: str) -> Colour:
    """The colour that stands for a group."""
    groups = list(GROUPS[attribute])
    return _COLOURS[groups.index(label)] if label in groups else UNTOLD
