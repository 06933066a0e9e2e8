"""Whom a query retrieves: entropy of the groups at the top, and what a fair ranker has of it.

Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 3.1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_BLOCK = 65_536  # images whose similarities are in memory at once
_ENUMERATED = 200_000  # ways to fill the top that are listed one by one
_DRAWN = 100_000  # such ways that are drawn where there are more


def normalised_entropy(counts: FloatArray) -> FloatArray:
    """(...) entropy of the groups at the top of a ranking, in [0, 1]: 1 where all are alike.

    ``-sum_j p_j log p_j / log N`` with p_j the share of group j of all N groups of the attribute,
    whether or not it was retrieved, and 0 log 0 = 0; NaN where nothing was. A retrieval metric is
    its mean over queries.

    Args:
        counts: (..., N) how many images of each group are at the top, whole numbers or weights.

    Raises:
        ValueError: if there are fewer than two groups.

    Example:
        >>> normalised_entropy(np.array([[50.0, 50.0], [100.0, 0.0], [75.0, 25.0]])).round(4)
        array([1.    , 0.    , 0.8113])
    """
    n_groups = counts.shape[-1]
    if n_groups < 2:
        raise ValueError("entropy needs two groups or more")
    total = counts.sum(axis=-1, keepdims=True)
    shares = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    entropy = -_plogp(shares).sum(axis=-1) / math.log(n_groups)
    found: FloatArray = np.clip(entropy, 0.0, 1.0) + 0.0  # no zero below zero
    return found


def _plogp(shares: FloatArray) -> FloatArray:
    logs = np.log(np.where(shares == 0, 1.0, shares))
    return np.asarray(shares * logs)


def top_ranks(
    queries: npt.NDArray[np.float32], items: npt.NDArray[np.float32], depth: int
) -> IntArray:
    """(C, depth) the items that are nearest to each query by dot product, the nearest first.

    Of equally near items the first comes first. Items are looked at in blocks, so they may be many
    and mapped from a file.

    Args:
        queries: (C, D).
        items: (N, D), N at least ``depth``.
        depth: how many, at least 1.

    Raises:
        ValueError: if there are fewer items than ``depth``.

    Example:
        >>> items = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], np.float32)
        >>> top_ranks(np.array([[1.0, 0.1]], np.float32), items, 2)
        array([[1, 2]])
    """
    if not 1 <= depth <= len(items):
        raise ValueError(f"depth {depth} is not from 1 to {len(items)}")
    rows = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0), np.float32)
    for start in range(0, len(items), _BLOCK):
        block = np.asarray(items[start : start + _BLOCK])
        near = queries @ block.T
        kept = _largest(near, min(depth, len(block)))
        rows = np.concatenate([rows, kept + start], axis=1)
        scores = np.concatenate([scores, np.take_along_axis(near, kept, 1)], axis=1)
        best = _largest(scores, min(depth, scores.shape[1]))
        rows = np.take_along_axis(rows, best, 1)
        scores = np.take_along_axis(scores, best, 1)
    order = np.lexsort((rows, -scores), axis=1)
    return np.take_along_axis(rows, order, 1)


def _largest(scores: npt.NDArray[np.float32], count: int) -> IntArray:
    """(C, count) places of the largest of each line, ascending; of equal ones the first."""
    if count == scores.shape[1]:
        return np.broadcast_to(np.arange(count), scores.shape)
    least = np.partition(scores, -count, axis=1)[:, -count, None]
    above, level = scores > least, scores == least
    room = count - above.sum(axis=1, keepdims=True)
    kept = above | (level & (np.cumsum(level, axis=1) <= room))
    return np.flatnonzero(kept).reshape(len(scores), count) % scores.shape[1]


def weighted_counts(weights: FloatArray, groups: IntArray, n_groups: int, k: int) -> FloatArray:
    """(B, N) how many of the first k of a ranking belong to each group.

    Args:
        weights: (B, M) how often each item of the ranking counts, from its top on, in B
            resamplings; where they come to fewer than k, all that there are count.
        groups: (M,) the items' groups.
        n_groups: N.
        k: depth.

    Example:
        >>> weighted_counts(np.array([[1.0, 0.0, 2.0]]), np.array([0, 1, 1]), 2, 2)
        array([[1., 1.]])
    """
    reached = np.minimum(np.cumsum(weights, axis=1), k)
    counted = np.diff(reached, axis=1, prepend=0.0)
    found: FloatArray = counted @ np.eye(n_groups)[groups]
    return found


class FairRanker(NamedTuple):
    """What the normalised entropy is of a ranker to whom groups are nothing.

    Attributes:
        expected: its expectation, exact.
        low: no more than ``(1 - level) / 2`` of all such rankings have a lower one.
        high: likewise above.
    """

    expected: float
    low: float
    high: float


def fair_ranker(sizes: IntArray, k: int, level: float = 0.95) -> FairRanker:
    """The entropy at k of one query's ranking that is drawn blindly from N groups of given sizes.

    The numbers at the top are then multivariate hypergeometric, and the expectation is the sum of
    those of the groups' own terms, each of them hypergeometric. The interval lists all ways to fill
    the top with their probabilities; where they are too many, it rests on 100,000 of them, drawn
    from the same law with the same seed each time. It is that of one query: a mean over queries
    lies nearer to the expectation, unless all of them rank alike.

    Args:
        sizes: (N,) images of each group.
        k: depth, at most all images.
        level: of the interval, in (0, 1).

    Raises:
        ValueError: if there are fewer images than k, or k is below 1.

    Example:
        >>> [round(x, 3) for x in fair_ranker(np.array([500, 500]), 100)]
        [0.993, 0.965, 1.0]
        >>> fair_ranker(np.array([3, 3]), 6).expected
        1.0
    """
    from scipy import stats

    total = int(sizes.sum())
    if not 1 <= k <= total:
        raise ValueError(f"k {k} is not from 1 to {total}")
    counts = np.arange(k + 1)
    terms = -_plogp(counts / k) / math.log(len(sizes))
    laws = [stats.hypergeom(total, int(size), k).pmf(counts) for size in sizes]
    expected = float(sum(law @ terms for law in laws))
    values, chances = _listed(sizes, k) if _is_short(sizes, k) else _drawn(sizes, k)
    low, high = _ends(values, chances, level)
    return FairRanker(min(expected, 1.0), min(low, expected), max(high, expected))


def _is_short(sizes: IntArray, k: int) -> bool:
    return math.comb(k + len(sizes) - 1, len(sizes) - 1) <= _ENUMERATED


def _listed(sizes: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """(W,) entropies of all ways to fill the top, and their probabilities."""
    from scipy import stats

    ways = np.zeros((1, 0), np.int64)
    for size in sizes[:-1]:
        left = k - ways.sum(axis=1)
        own = np.concatenate([np.arange(min(int(size), int(own)) + 1) for own in left])
        repeats = np.minimum(int(size), left) + 1
        ways = np.column_stack([np.repeat(ways, repeats, axis=0), own])
    ways = np.column_stack([ways, k - ways.sum(axis=1)])
    ways = ways[ways[:, -1] <= sizes[-1]]
    chances = stats.multivariate_hypergeom(sizes, k).pmf(ways)
    return normalised_entropy(ways.astype(np.float64)), np.asarray(chances, np.float64)


def _drawn(sizes: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    draws = np.random.default_rng(0).multivariate_hypergeometric(sizes, k, _DRAWN)
    return normalised_entropy(draws.astype(np.float64)), np.full(_DRAWN, 1 / _DRAWN)


def _ends(values: FloatArray, chances: FloatArray, level: float) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(chances[order])
    tail = (1 - level) / 2
    last = len(values) - 1
    low = min(int(np.searchsorted(reached, tail)), last)
    high = min(int(np.searchsorted(reached, 1 - tail)), last)
    return float(values[order[low]]), float(values[order[high]])


def ranks_of_own(queries: npt.NDArray[np.float32], items: npt.NDArray[np.float32]) -> IntArray:
    """(N,) at which place, from 0, each query finds its own item: the i-th query the i-th.

    Recall at k is the share of queries whose place is below k. Of equally near items the first
    comes first.

    Args:
        queries: (N, D).
        items: (N, D).

    Example:
        >>> ranks_of_own(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[::-1])
        array([1, 1])
    """
    found = np.empty(len(queries), np.int64)
    step = max(1, _BLOCK * 64 // max(len(items), 1))
    for start in range(0, len(queries), step):
        rows = np.arange(start, min(start + step, len(queries)))
        near = queries[rows] @ items.T
        own = near[np.arange(len(rows)), rows][:, None]
        before = np.arange(len(items)) < rows[:, None]
        found[rows] = ((near > own) | ((near == own) & before)).sum(axis=1)
    return found
