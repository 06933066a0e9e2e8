"""Captioner and people as two sides of captions, each caption position of people a side of its own.

People write several captions an image and the captioner one. Numbers that noise makes larger, such
as a maximum, are therefore taken position by position, from as many captions as the captioner
wrote, and averaged: like is compared with like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bias_pipeline.metrics.counting.tally import About, FloatArray, Mask, Sums
from bias_pipeline.metrics.parts import HUMAN, HUMAN_PAIRED, MODEL, MODEL_PAIRED, PartName
from bias_pipeline.metrics.seen import Seen

Table = Callable[[str, Mask], sparse.csr_array]


@dataclass(frozen=True, eq=False)
class CaptionSides:
    """Which images each part rests on.

    Attributes:
        positions: how many caption positions of people there are, at most as many as asked for.
        images: part to (N,) images: ``model`` and ``human`` all that the side describes, and the
            ``:paired`` ones those that both do. Parts without images are left out.
    """

    positions: int
    images: Mapping[PartName, Mask]

    @classmethod
    def of(cls, seen: Seen, positions: int) -> CaptionSides:
        """The sides of a corpus."""
        has = {side: seen.labelled & seen.has(side) for side in ("model", "human")}
        both = has["model"] & has["human"]
        described = {MODEL: has["model"], HUMAN: has["human"]}
        images = {**described, MODEL_PAIRED: both, HUMAN_PAIRED: both}
        most = int(seen.corpus.human.positions.max(initial=-1)) + 1
        kept = {part: own for part, own in images.items() if own.any()}
        return cls(min(positions, most), kept)

    def about(self, part: PartName, unit: str = "fraction") -> About:
        """What a part rests on; what is said of one side alone is never negative."""
        most = 1.0 if unit == "fraction" else np.inf
        return About(self.images[part], part.side, unit, (0.0, most))

    def tables(self, seen: Seen, make: Table) -> dict[str, sparse.csr_array]:
        """A table for each part, of people one for each position.

        Args:
            seen: what captions say.
            make: from a side and the captions chosen, (C,) flags, to an (N, ...) table.
        """
        found = {}
        for part, images in self.images.items():
            captions = seen.corpus.side(part.side)
            for k in range(self._positions(part)):
                chosen = images[captions.image_rows] & (captions.positions == k)
                found[key(part, k)] = make(part.side, chosen)
        return found

    def each(self, part: PartName, sums: Sums) -> list[FloatArray]:
        """The sums of a part, one for each position."""
        return [sums[name] for name in self.keys(part)]

    def keys(self, part: PartName) -> list[str]:
        """Names of a part's tables, one for each position."""
        return [key(part, k) for k in range(self._positions(part))]

    def _positions(self, part: PartName) -> int:
        return self.positions if part.side == "human" else 1


def key(part: PartName, position: int) -> str:
    """Name of a part's table."""
    return f"{part}:{position}"


def mean_of(values: Sequence[FloatArray]) -> FloatArray:
    """Mean over positions, element by element, of those that are known."""
    stacked = np.stack(values)
    known = np.isfinite(stacked)
    n = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
