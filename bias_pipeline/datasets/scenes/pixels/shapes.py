"""Shapes on a grid of pixels. Each pixel is inside or outside, so nothing bleeds over an edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import BoolArray, Float64Array

Kind = Literal["box", "ellipse", "triangle", "ring", "stripes", "dots"]


@dataclass(frozen=True)
class Shape:
    """A shape within the unit square of its picture; y grows downwards.

    Attributes:
        kind: ``stripes`` and ``dots`` are patterns that fill a box.
        x: of its centre.
        y: of its centre.
        width: before it is turned.
        height: before it is turned.
        role: which colour of the picture it has, from 0.
        turn: degrees, clockwise.
    """

    kind: Kind
    x: float
    y: float
    width: float
    height: float
    role: int = 0
    turn: float = 0.0


@lru_cache(maxsize=16384)
def inked(shapes: Sequence[Shape], height: int, width: int) -> npt.NDArray[np.int8]:
    """(height, width) the role of the uppermost shape at each pixel, -1 where there is none.

    Args:
        shapes: the lowest first; a tuple.
        height: in pixels, at least 1.
        width: in pixels, at least 1.

    Example:
        >>> inked((Shape("box", 0.5, 0.5, 0.5, 1.0),), 1, 4).tolist()
        [[-1, 0, 0, -1]]
    """
    y, x = np.mgrid[0:height, 0:width]
    x, y = (x + 0.5) / width, (y + 0.5) / height
    roles = np.full((height, width), -1, np.int8)
    for shape in shapes:
        roles[_inside(shape, x, y)] = shape.role
    roles.setflags(write=False)  # all who ask get the same array
    return roles


def _inside(shape: Shape, x: Float64Array, y: Float64Array) -> BoolArray:
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
