"""What queries retrieve of one part of a data set, and whom of it under any weights of images."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.metrics.functional.retrieval import (
    normalised_entropy,
    top_ranks,
    weighted_counts,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Ranked:
    """The tops of C rankings, somewhat deeper than k: resampled images may fall out.

    Attributes:
        images: (C, M) rows of a corpus, the nearest first.
        groups: (C, M) the images' groups.
        sizes: (K,) images of each group that are retrieved from.
        k: depth.
    """

    images: IntArray
    groups: IntArray
    sizes: IntArray
    k: int

    @classmethod
    def of(
        cls, queries: Vectors, pictures: Vectors, rows: IntArray, codes: IntArray, n_groups: int,
        k: int,
    ) -> Ranked:  # fmt: skip
        """Rank pictures for each query.

        Args:
            queries: (C, D).
            pictures: (N, D), N at least k; of equally near ones the first comes first.
            rows: (N,) the pictures' rows of a corpus.
            codes: (N,) their groups.
            n_groups: K.
            k: depth.
        """
        # An image counts Poisson(1) times: so many, but for one resampling in a thousand million,
        # hold k. Where fewer do, what there is counts.
        depth = min(len(rows), k + math.ceil(6 * math.sqrt(k)) + 10)
        top = top_ranks(queries, pictures, depth)
        return cls(rows[top], codes[top], np.bincount(codes, minlength=n_groups), k)

    @property
    def shares(self) -> FloatArray:
        """(C, K) the groups' shares of the first k."""
        tops = self.groups[:, : self.k]
        counts = np.stack([(tops == group).sum(axis=1) for group in range(len(self.sizes))], axis=1)
        return np.asarray(counts / self.k)

    def entropies(self, weights: FloatArray, rows: IntArray) -> FloatArray:
        """(B, C) normalised entropies at k, images weighted.

        Args:
            weights: (B, I) how often each image counts.
            rows: (I,) rows of the corpus, ascending, all that are ranked among them.
        """
        places = np.searchsorted(rows, self.images)
        found = [
            normalised_entropy(weighted_counts(weights[:, own], groups, len(self.sizes), self.k))
            for own, groups in zip(places, self.groups, strict=True)
        ]
        return np.stack(found, axis=1)
