"""What the entropy at the top is of a ranker to whom groups are nothing: its law, exactly."""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.metrics.functional.retrieval import normalised_entropy, plogp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ENUMERATED = 200_000  # ways to fill the top that are listed one by one
_DRAWN = 100_000  # such ways that are drawn where there are more
_EQUAL = 1e-9  # entropies that differ by less are one


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


def p_of_fair(entropies: FloatArray, sizes: IntArray, k: int) -> FloatArray:
    """(C,) two-sided p of each query's entropy at k, of the hypothesis that groups are nothing.

    Twice the smaller tail of the law of :func:`fair_ranker`, exact where its ways can be listed.
    Several splits of one data set share images in a manner that nobody knows; twice the mean of
    their p holds whatever it is (Ruschendorf 1982; Vovk and Wang 2020).

    Args:
        entropies: (S, C), a line a split.
        sizes: (S, N) images of each group that are retrieved from.
        k: depth.

    Example:
        >>> p_of_fair(np.array([[0.0, 1.0]]), np.array([[2, 2]]), 2).round(4).tolist()
        [0.6667, 1.0]
    """
    found = np.stack(
        [_tails(own, tuple(size), k) for own, size in zip(entropies, sizes.tolist(), strict=True)]
    )
    several = 2.0 if len(found) > 1 else 1.0
    return np.clip(several * found.mean(axis=0), sys.float_info.min, 1.0)


def _tails(entropies: FloatArray, sizes: tuple[int, ...], k: int) -> FloatArray:
    """(C,) twice the smaller tail; what was drawn counts itself, so that no tail is empty."""
    ordered, chances = _law(sizes, k)
    reached = np.concatenate([[0.0], np.cumsum(chances)])
    least = 0.0 if _is_short(np.array(sizes), k) else 1 / _DRAWN
    below = reached[np.searchsorted(ordered, entropies + _EQUAL, side="right")]
    above = reached[-1] - reached[np.searchsorted(ordered, entropies - _EQUAL, side="left")]
    return np.minimum(2 * np.minimum(below, above) + least, 1.0)


@lru_cache(maxsize=64)
def _law(sizes: tuple[int, ...], k: int) -> tuple[FloatArray, FloatArray]:
    """(W,) entropies of ways to fill the top, ascending, and their probabilities."""
    own = np.array(sizes)
    values, chances = _listed(own, k) if _is_short(own, k) else _drawn(own, k)
    order = np.argsort(values, kind="stable")
    return values[order], chances[order]


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
