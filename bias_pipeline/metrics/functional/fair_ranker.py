"""Exact distribution of the entropy at the top under a ranker that ignores groups."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.metrics.functional.group_counts import can_list, ways_of
from bias_pipeline.metrics.functional.retrieval import normalised_entropy, plogp


class FairRanker(NamedTuple):
    """Expectation and interval of a number under a ranker that ignores groups.

    Attributes:
        expected: the exact expectation.
        low: at most ``(1 - level) / 2`` of all such rankings are below.
        high: at most as many are above.
    """

    expected: float
    low: float
    high: float


def fair_ranker(sizes: IntArray, k: int, level: float = 0.95) -> FairRanker:
    """The entropy at k of one query's random ranking of images from N groups of given sizes.

    The counts at the top are multivariate hypergeometric, and the expectation is the sum of the
    groups' expected terms, each hypergeometric. The interval lists all ways to fill the top with
    their probabilities; if they are too many, it uses 100,000 draws with a fixed seed. It is for
    one query: a mean over queries is nearer to the expectation, unless all of them rank alike.

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
    total = int(sizes.sum())
    if not 1 <= k <= total:
        raise ValueError(f"k {k} is not from 1 to {total}")
    expected = expected_entropy(sizes, k)
    low, high = tail_ends(*_law(tuple(sizes.tolist()), k), level)
    return FairRanker(expected, min(low, expected), max(high, expected))


def expected_entropy(sizes: IntArray, k: int) -> float:
    """The exact expectation of :func:`fair_ranker` alone.

    Args:
        sizes: (N,) images of each group.
        k: depth, at most all images.

    Example:
        >>> round(expected_entropy(np.array([500, 500]), 100), 3)
        0.993
    """
    from scipy import stats

    counts = np.arange(k + 1)
    terms = -plogp(counts / k) / math.log(len(sizes))
    laws = [stats.hypergeom(int(sizes.sum()), int(size), k).pmf(counts) for size in sizes]
    return min(float(sum(law @ terms for law in laws)), 1.0)


@lru_cache(maxsize=64)
def _law(sizes: tuple[int, ...], k: int) -> tuple[Float64Array, Float64Array]:
    """(W,) entropies of ways to fill the top, and their probabilities."""
    counts, chances = ways_of(np.array(sizes), k)
    values = normalised_entropy(counts.astype(np.float64))
    listed = can_list(np.array(sizes), k)
    return values, np.exp(chances) if listed else np.full(len(values), 1 / len(values))


def tail_ends(values: Float64Array, chances: Float64Array, level: float) -> tuple[float, float]:
    """The ends of the central interval of a distribution.

    Args:
        values: (W,) in any order.
        chances: (W,) of each.
        level: probability of the interval.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(chances[order])
    tail = (1 - level) / 2
    last = len(values) - 1
    low = min(int(np.searchsorted(reached, tail)), last)
    high = min(int(np.searchsorted(reached, 1 - tail)), last)
    return float(values[order[low]]), float(values[order[high]])
