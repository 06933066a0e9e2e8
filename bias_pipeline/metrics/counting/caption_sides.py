"""Captions of captioner and people, people's one caption position at a time.

People write several captions an image and the captioner one. Noise makes some numbers larger, such
as a maximum. They are therefore computed for each caption position of people, from as many captions
as the captioner wrote, and averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import Sums, ValueBasis
from bias_pipeline.metrics.value_names import HUMAN, HUMAN_PAIRED, MODEL, MODEL_PAIRED, PartName

Table = Callable[[str, BoolArray], sparse.csr_array]


@dataclass(frozen=True, eq=False)
class CaptionSides:
    """The images of each part."""

    positions: int  # how many caption positions of people are used
    # Part to (N,) images: `model` and `human` are all that the side describes, the `:paired` ones
    # those that both describe. Parts without images are left out.
    images: Mapping[PartName, BoolArray]

    @classmethod
    def of(cls, view: CorpusView, positions: int) -> CaptionSides:
        """The sides of a corpus."""
        has = {side: view.labelled & view.has(side) for side in ("model", "human")}
        both = has["model"] & has["human"]
        described = {MODEL: has["model"], HUMAN: has["human"]}
        images = {**described, MODEL_PAIRED: both, HUMAN_PAIRED: both}
        most = int(view.corpus.human.positions.max(initial=-1)) + 1
        nonempty = {part: mask for part, mask in images.items() if mask.any()}
        return cls(min(positions, most), nonempty)

    def about(self, part: PartName, unit: str = "fraction") -> ValueBasis:
        """The images and unit of a part; a number of one side alone is never negative."""
        most = 1.0 if unit == "fraction" else np.inf
        return ValueBasis(self.images[part], part.side, unit, (0.0, most))

    def tables(self, view: CorpusView, make: Table) -> dict[str, sparse.csr_array]:
        """A table for each part, for people one for each caption position.

        Args:
            view: of the corpus.
            make: from a side and the captions chosen, (C,) flags, to an (N, ...) table.
        """
        tables = {}
        for part, images in self.images.items():
            captions = view.corpus.side(part.side)
            for k in range(self._positions(part)):
                chosen = images[captions.image_rows] & (captions.positions == k)
                tables[key(part, k)] = make(part.side, chosen)
        return tables

    def each(self, part: PartName, sums: Sums) -> list[Float64Array]:
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


def mean_of(values: Sequence[Float64Array]) -> Float64Array:
    """Mean over positions, element by element, of those that are known."""
    stacked = np.stack(values)
    known = np.isfinite(stacked)
    n = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
