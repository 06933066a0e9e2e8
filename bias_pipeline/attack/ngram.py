"""``encoder=ngram``: the n-grams of words in a caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import IntArray
from bias_pipeline.attack.encoder import FeatureEncoder, Items, SharedFeatures
from bias_pipeline.corpus.captions import Captions, dense_ranks, offsets, ranges
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Count, Range


@dataclass(frozen=True)
class Ngram(FeatureEncoder):
    """Binary n-gram indicators."""

    # The longest n-gram (1: single words, 2: pairs too)
    order: Annotated[int, Range(low=1, high=100)] = 2
    # In how many training captions an n-gram must occur to be used. Test captions never decide
    # which n-grams exist.
    min_count: Count = 2

    def read(self, data: LabelledCaptions) -> NgramItems:
        """Number the n-grams of captions."""
        captions = data.captions
        runs = [_runs(captions, width) for width in range(1, self.order + 1)]
        sizes = np.cumsum([0, *(int(codes.max(initial=-1)) + 1 for codes in runs)])
        n_grams = int(sizes[-1])
        shape = (len(captions), n_grams)
        # With a million captions an array of 64 bits has a hundred megabytes
        kind: Any = np.int32 if max(shape) < 2**31 else np.int64
        grams = np.concatenate(
            [(codes + size).astype(kind) for codes, size in zip(runs, sizes, strict=False)]
        )
        del runs
        numbers = np.arange(len(captions), dtype=kind)
        owners = [  # the caption of every run of words inside a caption
            np.repeat(numbers, np.maximum(captions.lengths - width + 1, 0))
            for width in range(1, self.order + 1)
        ]
        places = np.concatenate(owners), grams
        del owners
        # A repeated n-gram is one cell of the table.
        cells = sparse.coo_array((np.ones(len(grams), np.int8), places), shape).tocsr()
        starts = cells.indptr.astype(np.int64)
        grams_of_all = cells.indices.astype(np.int64)
        return NgramItems(grams_of_all, starts, n_grams, self.min_count, captions.identities)

    def names(self, captions: Captions, wanted: IntArray) -> list[tuple[str, ...]]:
        """The words of the n-grams whose indices are ``wanted`` (F,).

        Example:
            >>> captions = Captions.from_texts(["a red dog"])
            >>> Ngram(order=2).names(captions, np.arange(5))
            [('a',), ('red',), ('dog',), ('a', 'red'), ('red', 'dog')]
        """
        grams: list[tuple[str, ...]] = []
        words = np.array(captions.types, object)
        for width in range(1, self.order + 1):
            first = _firsts(captions, width)
            places = first[np.unique(_runs(captions, width), return_index=True)[1]]
            spelled = words[captions.tokens[places[:, None] + np.arange(width)]]
            grams += map(tuple, spelled.tolist())
        return [grams[number] for number in wanted.tolist()]


@dataclass(frozen=True, eq=False)
class NgramItems(Items):
    """The distinct n-grams of N captions."""

    grams: IntArray  # n-gram numbers, caption after caption, each at most once a caption
    starts: IntArray  # (N + 1,) where each caption's n-grams start
    n_grams: int  # how many distinct n-grams there are
    min_count: int  # see `Ngram`
    texts: IntArray  # (N,) equal numbers for captions of equal words

    def fit(self, train: IntArray) -> NgramInputs:
        """The n-grams that occur in at least ``min_count`` training captions."""
        counts = np.bincount(self.grams_of(train), minlength=self.n_grams)
        return NgramInputs(self, np.flatnonzero(counts >= self.min_count))

    def share_features(self, trains: Sequence[IntArray]) -> SharedFeatures:
        """The features of distinct captions. A repeated caption is one item."""
        # Columns, and so an attacker's digits, do not depend on which attackers are trained
        # together.
        used = np.flatnonzero(np.bincount(self.grams, minlength=self.n_grams) >= self.min_count)
        _, first, rows = np.unique(self.texts, return_index=True, return_inverse=True)
        matrix = NgramInputs(self, used).matrix(first)
        learnt = [np.bincount(rows[train], minlength=len(first)) for train in trains]
        counts = matrix.T @ np.stack(learnt, axis=1).astype(np.float64)
        return SharedFeatures(matrix, rows, counts >= self.min_count)

    def grams_of(self, rows: IntArray) -> IntArray:
        """The n-grams of the captions in ``rows``, one caption after the other."""
        return self.grams[ranges(self.starts[rows], np.diff(self.starts)[rows])]


@dataclass(frozen=True, eq=False)
class NgramInputs:
    """Indicators of the n-grams that an attacker knows."""

    items: NgramItems  # the n-grams of all captions
    columns: IntArray  # (F,) numbers of the n-grams that are columns, ascending

    def matrix(self, rows: IntArray) -> sparse.csr_array:
        """(B, F): a sparse matrix of 0 and 1."""
        column = np.full(self.items.n_grams, -1, np.int64)
        column[self.columns] = np.arange(len(self.columns))
        cells = column[self.items.grams_of(rows)]
        used = cells >= 0
        lengths = np.diff(self.items.starts)[rows]
        bounds = np.concatenate([[0], np.cumsum(used)])[offsets(lengths)]
        data = np.ones(int(bounds[-1]))
        # Products read half the memory if 32 bits are enough.
        kind = np.int32 if bounds[-1] < np.iinfo(np.int32).max else np.int64
        indices = (cells[used].astype(kind), bounds.astype(kind))
        return sparse.csr_array((data, *indices), shape=(len(rows), len(self.columns)))


def _runs(captions: Captions, width: int) -> IntArray:
    """For every run of ``width`` words inside a caption, its index (numbered without gaps)."""
    first = _firsts(captions, width)
    codes = np.zeros(len(first), np.int64)
    for shift in range(width):
        # Renumbering after each word keeps the products far below 2 ** 63.
        codes = dense_ranks(codes * len(captions.types) + captions.tokens[first + shift])
    return codes


def _firsts(captions: Captions, width: int) -> IntArray:
    """The positions at which runs of ``width`` words inside a caption begin."""
    return ranges(captions.starts[:-1], np.maximum(captions.lengths - width + 1, 0))
