"""What queries retrieve of one part of a data set, and whom of it under any weights of images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bias_pipeline.metrics.functional.retrieval import (
    Ties,
    counted_places,
    normalised_entropy,
    top_ranks,
    weighted_counts,
    weighted_places,
)
from bias_pipeline.metrics.functional.skew import Log, ndkl

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
        pool: (N,) rows of all images that are retrieved from.
        codes: (N,) their groups.
        ties: see :func:`~bias_pipeline.metrics.functional.retrieval.weighted_counts`.
        blocks: (C, M) numbers that equally near images share; None: nobody asks.
    """

    images: IntArray
    groups: IntArray
    sizes: IntArray
    k: int
    pool: IntArray
    codes: IntArray
    ties: Ties = "stable"
    blocks: IntArray | None = None

    @classmethod
    def of(
        cls,
        queries: Vectors,
        pictures: Vectors,
        rows: IntArray,
        codes: IntArray,
        n_groups: int,
        k: int,
        ties: Ties = "stable",
        least: int = 0,
    ) -> Ranked:
        """Rank pictures for each query.

        Args:
            queries: (C, D).
            pictures: (N, D), N at least k; of equally near ones the first comes first.
            rows: (N,) the pictures' rows of a corpus.
            codes: (N,) their groups.
            n_groups: K.
            k: depth.
            ties: see the class.
            least: how many of each ranking are there at least, if there are so many pictures.
        """
        # An image counts Poisson(1) times: so many, but for one resampling in a thousand million,
        # hold k. Where fewer do, what there is counts.
        depth = min(len(rows), max(least, k + math.ceil(6 * math.sqrt(k)) + 10))
        top, blocks = top_ranks(queries, pictures, depth), None
        if ties != "stable":
            blocks = tied(queries, pictures, top)
            while depth < len(rows) and (blocks[:, k - 1] == blocks[:, -1]).any():
                depth = min(len(rows), 2 * depth)  # until all that tie with the k-th are there
                top = top_ranks(queries, pictures, depth)
                blocks = tied(queries, pictures, top)
        sizes = np.bincount(codes, minlength=n_groups)
        return cls(rows[top], codes[top], sizes, k, rows, codes, ties, blocks)

    def reordered(self, order: IntArray) -> Ranked:
        """The same with the first of each ranking in another order; nobody knows of ties then.

        Args:
            order: (C, L) numbers of places, of the first L.
        """
        rest = np.arange(order.shape[1], self.images.shape[1])
        places = np.hstack([order, np.broadcast_to(rest, (len(order), len(rest)))])
        images, groups = (
            np.take_along_axis(own, places, axis=1) for own in (self.images, self.groups)
        )
        return replace(self, images=images, groups=groups, blocks=None)

    @property
    def cut(self) -> bool:
        """Whether some query has no one set of k: equally near images are at its end."""
        if self.blocks is None or self.blocks.shape[1] == self.k:
            return False
        return bool((self.blocks[:, self.k - 1] == self.blocks[:, self.k]).any())

    @property
    def shares(self) -> FloatArray:
        """(C, K) the groups' shares of the top."""
        counts = self.top_counts
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    @property
    def top_counts(self) -> FloatArray:
        """(C, K) images of each group at the top."""
        return self.counts(np.ones((1, self.images.shape[1])))[0]

    @cached_property
    def counted(self) -> FloatArray:
        """(C, D) how much each of the first places counts, D being the last that does."""
        once = np.ones((1, self.images.shape[1]))
        blocks = [None] * len(self.images) if self.blocks is None else self.blocks
        lines = [counted_places(once, self.k, self.ties, own) for own in blocks]
        found = np.concatenate(lines)
        return found[:, : int(np.flatnonzero(found.any(axis=0)).max()) + 1]

    def counts(self, weights: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """(B, C, K) images of each group at the top, images weighted.

        Args:
            weights: (B, I) how often each image counts.
            rows: (I,) rows of the corpus, ascending, all that are ranked among them; None: the
                weights are those of places, for all queries.
        """
        found = [
            weighted_counts(own, groups, len(self.sizes), self.k, self.ties, blocks)
            for own, groups, blocks in self._weighted(weights, rows)
        ]
        return np.stack(found, axis=1)

    def entropies(self, weights: FloatArray, rows: IntArray) -> FloatArray:
        """(B, C) normalised entropies of the top, images weighted.

        Args:
            weights: see :meth:`counts`.
            rows: see there.
        """
        return normalised_entropy(self.counts(weights, rows))

    def ndkl(
        self, weights: FloatArray, rows: IntArray | None, target: FloatArray, log: Log
    ) -> FloatArray:
        """(B, C) :func:`~bias_pipeline.metrics.functional.skew.ndkl` of the top, images weighted.

        Args:
            weights: see :meth:`counts`.
            rows: see there.
            target: (K,).
            log: base.
        """
        found = [
            ndkl(
                weighted_places(own, groups, len(self.sizes), self.k, self.ties, blocks),
                target,
                self.k,
                log,
            )
            for own, groups, blocks in self._weighted(weights, rows)
        ]
        return np.stack(found, axis=1)

    def _weighted(
        self, weights: FloatArray, rows: IntArray | None
    ) -> Iterator[tuple[FloatArray, IntArray, IntArray | None]]:
        """Query by query the weights of its places, their groups and blocks."""
        for query, (images, groups) in enumerate(zip(self.images, self.groups, strict=True)):
            own = weights if rows is None else weights[:, np.searchsorted(rows, images)]
            yield own, groups, None if self.blocks is None else self.blocks[query]


def tied(queries: Vectors, pictures: Vectors, top: IntArray) -> IntArray:
    """(C, M) numbers from 0 on that equally near pictures of a ranking share.

    Args:
        queries: (C, D).
        pictures: (N, D).
        top: (C, M) the nearest, the nearest first.

    Example:
        >>> one = np.ones((1, 2), np.float32)
        >>> pictures = np.array([[1, 0], [0, 1], [0, 0]], np.float32)
        >>> tied(one, pictures, np.array([[0, 1, 2]])).tolist()
        [[0, 0, 1]]
    """
    near = np.stack([pictures[own] @ query for own, query in zip(top, queries, strict=True)])
    return np.cumsum(np.diff(near, axis=1, prepend=near[:, :1]) != 0, axis=1)
