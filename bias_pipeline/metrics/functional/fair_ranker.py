"""What the entropy at the top is of a ranker to whom groups are nothing: its law, exactly."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.metrics.functional.group_counts import can_list, ways_of
from bias_pipeline.metrics.functional.retrieval import normalised_entropy, plogp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


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
    total = int(sizes.sum())
    if not 1 <= k <= total:
        raise ValueError(f"k {k} is not from 1 to {total}")
    expected = expected_entropy(sizes, k)
    low, high = ends(*_law(tuple(sizes.tolist()), k), level)
    return FairRanker(expected, min(low, expected), max(high, expected))


def expected_entropy(sizes: IntArray, k: int) -> float:
    """The expectation alone of what :func:`fair_ranker` has, exact.

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
def _law(sizes: tuple[int, ...], k: int) -> tuple[FloatArray, FloatArray]:
    """(W,) entropies of ways to fill the top, and their probabilities."""
    counts, chances = ways_of(np.array(sizes), k)
    values = normalised_entropy(counts.astype(np.float64))
    listed = can_list(np.array(sizes), k)
    return values, np.exp(chances) if listed else np.full(len(values), 1 / len(values))


def ends(values: FloatArray, chances: FloatArray, level: float) -> tuple[float, float]:
    """The ends of the middle of a law.

    Args:
        values: (W,) in any order.
        chances: (W,) of each.
        level: how much of it lies between them.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(chances[order])
    tail = (1 - level) / 2
    last = len(values) - 1
    low = min(int(np.searchsorted(reached, tail)), last)
    high = min(int(np.searchsorted(reached, 1 - tail)), last)
    return float(values[order[low]]), float(values[order[high]])
