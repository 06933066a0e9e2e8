"""Ranks images of a data set for queries, and counts the groups at the top under any weights.

A model that reads picture and text together may order the first images of each ranking again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import UsageError
from bias_pipeline.retrieval.formulas import (
    Ties,
    counted_places,
    normalised_entropy,
    top_ranks,
    weighted_counts,
    weighted_places,
)
from bias_pipeline.retrieval.skew import Log, ndkl

if TYPE_CHECKING:
    from bias_pipeline.retrieval.dual_encoders import DualEncoder, PairMatcher


@dataclass(frozen=True, eq=False)
class Ranked:
    """The tops of C rankings, with a few more than k images, since resampling can drop images."""

    images: IntArray  # (C, M) rows of a corpus, the nearest first
    groups: IntArray  # (C, M) the images' groups
    sizes: IntArray  # (K,) images of each group in the pool
    k: int  # depth
    pool: IntArray  # (N,) rows of all images that can be retrieved
    codes: IntArray  # (N,) their groups
    ties: Ties = "stable"  # see `weighted_counts`
    # (C, M) numbers that equally near images of a ranking share; None where ties do not matter
    blocks: IntArray | None = None

    @classmethod
    def rank(
        cls,
        queries: Float32Array,
        pictures: Float32Array,
        rows: IntArray,
        codes: IntArray,
        n_groups: int,
        k: int,
        ties: Ties = "stable",
        least: int = 0,
    ) -> Ranked:
        """Rank k or more pictures (N, D) for queries (C, D); equal pictures keep their order."""
        # An image counts Poisson(1) times. At this depth the counts sum to k or more in all but one
        # of a thousand million resamplings.
        depth = min(len(rows), max(least, k + math.ceil(6 * math.sqrt(k)) + 10))
        top, blocks = top_ranks(queries, pictures, depth), None
        if ties != "stable":
            blocks = tied(queries, pictures, top)
            while depth < len(rows) and (blocks[:, k - 1] == blocks[:, -1]).any():
                depth = min(len(rows), 2 * depth)  # until all ties of the k-th are included
                top = top_ranks(queries, pictures, depth)
                blocks = tied(queries, pictures, top)
        sizes = np.bincount(codes, minlength=n_groups)
        return cls(rows[top], codes[top], sizes, k, rows, codes, ties, blocks)

    def reorder(self, order: IntArray) -> Ranked:
        """The rankings without ties, after ``places`` (C, L) reordered their first L images."""
        rest = np.arange(order.shape[1], self.images.shape[1])
        places = np.hstack([order, np.broadcast_to(rest, (len(order), len(rest)))])
        images, groups = (
            np.take_along_axis(table, places, axis=1) for table in (self.images, self.groups)
        )
        return replace(self, images=images, groups=groups, blocks=None)

    @property
    def cut(self) -> bool:
        """Whether ties make it unclear which images are the first k of a query."""
        if self.blocks is None or self.blocks.shape[1] == self.k:
            return False
        return bool((self.blocks[:, self.k - 1] == self.blocks[:, self.k]).any())

    @property
    def shares(self) -> Float64Array:
        counts = self.top_counts
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    @property
    def top_counts(self) -> Float64Array:
        """(C, K) the number of images of each group at the top."""
        return self.counts(np.ones((1, self.images.shape[1])))[0]

    @cached_property
    def place_counts(self) -> Float64Array:
        """(C, D) how much each place counts, up to the last place that counts at all."""
        once = np.ones((1, self.images.shape[1]))
        blocks = [None] * len(self.images) if self.blocks is None else self.blocks
        lines = [counted_places(once, self.k, self.ties, numbers) for numbers in blocks]
        counts = np.concatenate(lines)
        return counts[:, : int(np.flatnonzero(counts.any(axis=0)).max()) + 1]

    def counts(self, weights: Float64Array, rows: IntArray | None = None) -> Float64Array:
        """(B, C, K) the weighted number of images of each group at the top.

        ``weights`` (B, I) belong to ``rows`` (I,) of the corpus, which are ascending and include
        all ranked images. Without rows, the weights belong to the places of rankings, for all
        queries.
        """
        return np.stack(self._of_queries(weighted_counts, weights, rows), axis=1)

    def entropies(self, weights: Float64Array, rows: IntArray) -> Float64Array:
        return normalised_entropy(self.counts(weights, rows))

    def ndkl(
        self, weights: Float64Array, rows: IntArray | None, target: Float64Array, log: Log
    ) -> Float64Array:
        """(B, C) :func:`~bias_pipeline.retrieval.skew.ndkl` of the top under weights of images."""
        places = self._of_queries(weighted_places, weights, rows)
        return np.stack([ndkl(of_query, target, self.k, log) for of_query in places], axis=1)

    def _of_queries(
        self,
        formula: Callable[..., Float64Array],
        weights: Float64Array,
        rows: IntArray | None,
    ) -> list[Float64Array]:
        """The value of a formula of weights, groups, k and ties for the top of each query."""
        blocks = [None] * len(self.images) if self.blocks is None else self.blocks
        return [
            formula(
                weights if rows is None else weights[:, np.searchsorted(rows, images)],
                groups,
                len(self.sizes),
                self.k,
                self.ties,
                numbers,
            )
            for images, groups, numbers in zip(self.images, self.groups, blocks, strict=True)
        ]


def tied(queries: Float32Array, pictures: Float32Array, top: IntArray) -> IntArray:
    """(C, M) numbers from 0 on, which equally near pictures share; ``top`` is (C, M).

    Example:
        >>> one = np.ones((1, 2), np.float32)
        >>> pictures = np.array([[1, 0], [0, 1], [0, 0]], np.float32)
        >>> tied(one, pictures, np.array([[0, 1, 2]])).tolist()
        [[0, 0, 1]]
    """
    near = np.stack(
        [pictures[nearest] @ query for nearest, query in zip(top, queries, strict=True)]
    )
    return np.cumsum(np.diff(near, axis=1, prepend=near[:, :1]) != 0, axis=1)


@dataclass(frozen=True, eq=False)
class Reranker:
    """Orders the first images of each ranking again by judging pairs, which is more accurate."""

    matcher: PairMatcher  # judges pairs
    pictures: Pictures  # of a whole corpus
    n: int  # how many images of a ranking are ordered again; the others stay behind them

    def note(self, *, debiased: bool) -> str:
        chose = "; the debiasing only chose them" if debiased else ""
        return (
            f"the first {self.n} of each ranking are in the order in which the encoder judges them "
            f"together with the query{chose}"
        )

    def rerank(self, queries: Sequence[str], before: Ranked) -> Ranked:
        """The rankings of C queries, whose first n images are ordered by how well they match."""
        images = before.images[:, : self.n]
        texts = np.broadcast_to(np.arange(len(queries))[:, None], images.shape)
        return before.reorder(self._best_first(queries, images, texts))

    def places(
        self,
        queries: Float32Array,
        items: Float32Array,
        before: IntArray,
        captions: Sequence[str],
        rows: IntArray,
        *,
        of_texts: bool,
    ) -> IntArray:
        """(N,) the rank of each query's item, after the first n items are ordered again.

        If ``of_texts``, captions are queries and pictures are items; otherwise the roles are
        exchanged. ``before`` has the places by vectors, and ``rows`` (N,) has the pictures' rows of
        the corpus.
        """
        top = top_ranks(queries, items, min(self.n, len(items)))
        target = np.broadcast_to(np.arange(len(queries))[:, None], top.shape)
        text, picture = (target, top) if of_texts else (top, target)
        order = self._best_first(captions, rows[picture], text)
        hits = np.take_along_axis(top, order, axis=1) == target
        places: IntArray = np.where(hits.any(axis=1), hits.argmax(axis=1), before)
        return places

    def _best_first(self, texts: Sequence[str], rows: IntArray, numbers: IntArray) -> IntArray:
        """(C, M) the order of the pairs in each line, from the best match to the worst."""
        pairs = np.column_stack([rows.ravel(), numbers.ravel()])
        scores = self.matcher.match(self.pictures, texts, pairs).reshape(rows.shape)
        return np.argsort(-scores, axis=1, kind="stable")


def reranker(n: int, dual: DualEncoder, corpus: Corpus) -> Reranker:
    if dual.matcher is None:
        raise no_judge(n)
    assert corpus.pictures is not None
    dual.matcher.require()
    return Reranker(dual.matcher, corpus.pictures, n)


def no_judge(rerank: int) -> UsageError:
    return UsageError(
        f"metric.rerank={rerank}: the encoder has no mode that judges a picture and a text "
        "together; choose encoder=fiber or a BLIP for retrieval as encoder.model, or "
        "metric.rerank=null"
    )


def check_rerank(rerank: int, k: int, ties: Ties) -> None:
    """Refuse a depth without effect, and ties settings, since reordered images have no ties."""
    if rerank <= k:
        raise UsageError(
            f"metric.rerank={rerank}: the first metric.k={k} stay the same in any order; choose a "
            "larger number"
        )
    if ties != "stable":
        raise UsageError(
            f"metric.ties={ties} needs the vectors' ranking, and metric.rerank={rerank} changes "
            "it; set metric.ties=stable or metric.rerank=null"
        )
