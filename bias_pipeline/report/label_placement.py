"""Names next to points, so that none hides another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.array_types import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation


MARKER = 5.0  # half of a marker's box, as all lengths here in pixels
GAP = 6.0
FAR = 16.0  # farther names get a line to their point
_REACHES = (GAP, 14.0, 24.0, 38.0, 56.0, 80.0)
_SIDES = [side for side in product((1, -1, 0), (1, -1, 0)) if any(side)]  # right above first
_LINE_WEIGHT = 0.2  # crossing an interval is better than hiding another name


def spread(
    points: Float64Array, sizes: Float64Array, area: Float64Array, lines: Float64Array
) -> Float64Array:
    """Places for the names of points, chosen one after another so that each hides least.

    Args:
        points: (N, 2).
        sizes: (N, 2) width and height of the names.
        area: (4,) left, bottom, right and top, which names should not leave.
        lines: (L, 4) boxes of lines, in the same order, that names should not cross.

    Returns:
        (N, 2) the lower left corners of the names.

    Example:
        >>> spread(np.array([[10.0, 10]]), np.array([[20.0, 8]]), np.array([0.0, 0, 99, 99]),
        ...        np.empty((0, 4))).tolist()
        [[16.0, 16.0]]
    """
    markers = np.hstack([points - MARKER, points + MARKER])
    corners = np.zeros_like(points)
    taken = markers
    for i in np.argsort(points[:, 0], kind="stable"):
        offered = _offers(points[i], sizes[i])  # (M, 4)
        hidden = _overlap(offered, taken).sum(axis=1)
        crossed = _LINE_WEIGHT * _overlap(offered, lines).sum(axis=1)
        lost = sizes[i].prod() - _overlap(offered, area[None]).sum(axis=1)
        best = offered[np.argmin(hidden + crossed + 2 * lost)]  # of ties the nearest
        corners[i] = best[:2]
        taken = np.vstack([taken, best])
    return corners


def _offers(point: Float64Array, size: Float64Array) -> Float64Array:
    """(M, 4) boxes around a point, the nearest first."""
    sides = np.array(_SIDES, np.float64)
    lower_left = [
        point + reach * sides - (1 - sides) / 2 * size  # at -1 the whole size, at 0 half of it
        for reach in _REACHES
    ]
    corners = np.vstack(lower_left)
    return np.hstack([corners, corners + size])


def _overlap(one: Float64Array, other: Float64Array) -> Float64Array:
    """(M, L) areas that boxes (M, 4) and (L, 4) share."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    return np.maximum(high - low, 0).prod(axis=2)


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    lines: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    faint: str,
) -> list[Annotation]:
    """Write names next to points of a plot whose limits are final.

    Args:
        axes: of the plot.
        points: N points in its data coordinates; NaN gets no name.
        names: N texts.
        lines: ends of lines that names should not cross.
        faint: colour of the lines that lead from points to far names.
    """
    figure = axes.figure
    known = [i for i, point in enumerate(points) if np.isfinite(point).all()]
    drawn = [axes.annotate(names[i], points[i], (0, 0), textcoords="offset points") for i in known]
    if not drawn:
        return []
    figure.draw_without_rendering()  # type: ignore[union-attr]  # the layout is settled by it
    boxes = [annotation.get_window_extent() for annotation in drawn]
    at = axes.transData.transform([points[i] for i in known])
    finite = [ends for ends in lines if np.isfinite(ends).all()]
    ends = axes.transData.transform(np.reshape(finite, (-1, 2))).reshape(-1, 4)
    low, high = np.minimum(ends[:, :2], ends[:, 2:]), np.maximum(ends[:, :2], ends[:, 2:])
    area = np.array(axes.get_window_extent().extents)
    sizes = np.array([[box.width, box.height] for box in boxes])
    corners = spread(at, sizes, area, np.hstack([low - 1, high + 1]))
    scale = 72 / figure.dpi
    for annotation, corner, point, size in zip(drawn, corners, at, sizes, strict=True):
        annotation.xyann = tuple((corner - point) * scale)
        nearest = np.clip(point, corner, corner + size)
        if np.linalg.norm(nearest - point) > FAR:
            connector = axes.transData.inverted().transform([point, nearest])
            axes.plot(*connector.T, color=faint, linewidth=0.7, scalex=False, scaley=False)
    return drawn
