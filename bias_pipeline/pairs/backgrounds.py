"""Tests whether the pictures of a set also differ with the group outside the person.

If a background was drawn with the group, no test of captions can separate the two effects. So the
left and right quarters of pictures are compared in the same way as captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.photos import read_pixels
from bias_pipeline.pairs.contrasts import Contrasts
from bias_pipeline.pairs.distances import BeyondPictures, SetDistances
from bias_pipeline.pairs.group_gaps import MeasuredGap
from bias_pipeline.stats.sign_flips import mean_p

MEASURES = ("brightness", "saturation", "red less blue", "contrast", "edges")
_READ, _SIDE = 128, 16  # pixels per side, as read and as compared
_ALPHA = 0.05


@dataclass(frozen=True)
class Backgrounds:
    """How much the outer quarters of the pictures depend on the group."""

    gaps: Sequence[MeasuredGap]  # differences in measures from 0 to 1
    above: float  # the share of sets whose pixels follow the group: beyond_pictures above 0
    p_value: float  # of it

    def sentence(self, second: str) -> str:
        """A sentence for readers that says what differs."""
        differing = [
            f"{gap.name} {gap.second - gap.first:+.3f} in pictures of {second} "
            f"(p {gap.p_value:.2g})"
            for gap in self.gaps
            if gap.p_value < _ALPHA
        ]
        follow = self.p_value < _ALPHA
        if not differing and not follow:
            return "outside the person (outer quarters) no difference between groups is shown"
        pixels = (
            f"pixels follow the group in {100 * self.above:.0f} % of sets (p {self.p_value:.2g})"
        )
        return "outside the person (outer quarters): " + "; ".join(
            [*differing, *([pixels] if follow else [])]
        )


def backgrounds(pictures: Pictures | None, contrasts: Contrasts) -> Backgrounds | None:
    """Compare the outer quarters of the pictures, or None unless all pictures are files."""
    rows = np.union1d(contrasts.first, contrasts.second)
    if pictures is None or not all(isinstance(pictures.files[row], Path) for row in rows.tolist()):
        return None
    n_pictures = len(pictures)
    values = np.full((n_pictures, len(MEASURES)), np.nan)
    small = np.zeros((n_pictures, _SIDE * _SIDE // 2 * 3))
    for row in rows.tolist():
        pixels = read_pixels(pictures, row, _READ) / 255
        values[row] = _measures(pixels)
        blocks = pixels.reshape(_SIDE, _READ // _SIDE, _SIDE, _READ // _SIDE, 3)
        small[row] = blocks.mean(axis=(1, 3))[:, _outer_columns(_SIDE)].ravel()
    place = np.arange(n_pictures)
    crossed = SetDistances.from_vectors(
        contrasts, sparse.csr_array(small), place, _squared_distances
    ).crossed
    beyond = BeyondPictures(contrasts, crossed)
    known = beyond.by_set[~np.isnan(beyond.by_set)]
    return Backgrounds(
        [_gap(name, contrasts, values[:, k]) for k, name in enumerate(MEASURES)],
        float((known > 0).mean()) if len(known) else float("nan"),
        beyond.p_value(),
    )


def _gap(measure: str, contrasts: Contrasts, values: Float64Array) -> MeasuredGap:
    first, second = (contrasts.of_sets(group, values) for group in (0, 1))
    p_value = mean_p(contrasts.keys, second - first)
    return MeasuredGap(measure, float(first.mean()), float(second.mean()), p_value)


def _outer_columns(width: int) -> BoolArray:
    columns: IntArray = np.arange(width)
    return (columns < width // 4) | (columns >= width - width // 4)


def _measures(pixels: Float64Array) -> list[float]:
    """The value of each measure in :data:`MEASURES` for the outer quarters."""
    outer = pixels[:, _outer_columns(pixels.shape[1])]
    light, high = outer.mean(axis=2), outer.max(axis=2)
    saturation = (high - outer.min(axis=2)) / np.where(high > 0, high, 1)
    edges = np.abs(np.diff(pixels.mean(axis=2), axis=1))[:, _outer_columns(pixels.shape[1])[:-1]]
    red_blue = outer[..., 0] - outer[..., 2]
    return [
        float(each)
        for each in (light.mean(), saturation.mean(), red_blue.mean(), light.std(), edges.mean())
    ]


def _squared_distances(vectors: sparse.csr_array) -> Float64Array:
    """(n, n) mean squared differences of pixels."""
    dense = vectors.toarray()
    squares: Float64Array = ((dense[:, None] - dense) ** 2).mean(axis=2)
    return squares
