"""``debias=none``: vectors as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bias_pipeline.debias.base import Debias, Examples
from bias_pipeline.debias.projection import Projection
from bias_pipeline.declared import Count, NotNegative


@dataclass(frozen=True)
class Untouched(Debias):
    """No edit. It has the settings of the others, so that a sweep can include it.

    Attributes:
        pairing: of ``subspace``.
        bins: of ``clip_clip``.
        smoothing: of ``clip_clip``.
    """

    unused: ClassVar[tuple[str, ...]] = ("k", "side", "renormalise", "pairing", "bins", "smoothing")

    pairing: str = "random"
    bins: Count = 64
    smoothing: NotNegative = 1.0

    @property
    def sides(self) -> tuple[str, ...]:
        """None."""
        return ()

    def fit(self, examples: Examples) -> Projection:
        """A projection without directions."""
        return Projection(np.empty((0, examples.vectors.shape[1])))
