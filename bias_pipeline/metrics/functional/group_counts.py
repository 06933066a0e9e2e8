"""Exact tests of whether the groups at the top of a ranking are those of a random draw."""

from __future__ import annotations

import math
import sys
from functools import lru_cache

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray

_ENUMERATED = 200_000  # most ways to fill the top that are listed one by one
_DRAWN = 100_000  # ways that are drawn if there are more
_EQUAL = 1e-7  # probabilities whose logarithms differ by less are equal


def p_of_counts(counts: IntArray, sizes: IntArray) -> Float64Array:
    """(C,) exact two-sided p of the groups that each query retrieves, if queries ignore groups.

    The counts of a random draw are multivariate hypergeometric. p is the probability of all counts
    that are at most as likely as those observed. If there are too many to list, it uses 100,000
    draws with a fixed seed, and counts the observed one among them.

    Splits of one data set share images, so their p depend on one another in an unknown way; twice
    their mean is a valid p for any dependence (Ruschendorf 1982; Vovk and Wang 2020).

    Args:
        counts: (S, C, K) images of each group at the top, by split and query.
        sizes: (S, K) images of each group that are retrieved from.

    Example:
        >>> p_of_counts(np.array([[[0, 2], [1, 1]]]), np.array([[2, 2]])).round(4).tolist()
        [0.3333, 1.0]
    """
    p_values = np.array(
        [
            [_p_of_one(tuple(count), tuple(size)) for count in split]
            for split, size in zip(counts.tolist(), sizes.tolist(), strict=True)
        ]
    )
    several = 2.0 if len(p_values) > 1 else 1.0
    return np.clip(several * p_values.mean(axis=0), sys.float_info.min, 1.0)


def excess(counts: Float64Array, sizes: IntArray | Float64Array) -> Float64Array:
    """(..., C, K) by how many images each group exceeds its share of all images.

    Args:
        counts: (..., C, K) images of each group at the top.
        sizes: (..., K) images of each group that are retrieved from.

    Example:
        >>> excess(np.array([[8.0, 2.0]]), np.array([50, 50])).tolist()
        [[3.0, -3.0]]
    """
    shares = sizes / sizes.sum(axis=-1, keepdims=True)
    above: Float64Array = counts - counts.sum(axis=-1, keepdims=True) * shares[..., None, :]
    return above


def standardised(deviations: Float64Array, shares: Float64Array) -> Float64Array:
    """(..., K) deviations of counts, divided by the spread that a random draw gives each group.

    Args:
        deviations: (..., K) see :func:`excess`.
        shares: (K,) of the groups; one without images deviates by 0.
    """
    spread = np.sqrt(shares * (1 - shares))
    some = spread > 0
    return np.divide(deviations, spread, out=np.zeros(deviations.shape), where=some)


def finite_population(n: int, k: int) -> float:
    """The factor by which drawing k of n without replacement narrows a count's spread, in [0, 1].

    Example:
        >>> finite_population(101, 1), finite_population(100, 100)
        (1.0, 0.0)
    """
    return math.sqrt((n - k) / (n - 1)) if n > 1 else 0.0


def ways_of(sizes: IntArray, k: int) -> tuple[IntArray, Float64Array]:
    """(W, K) counts of a random draw of k images, and (W,) the logarithms of their probabilities.

    All ways to fill the top; if they are too many, 100,000 drawn with a fixed seed.

    Args:
        sizes: (K,) images of each group.
        k: how many are drawn.
    """
    from scipy import stats

    ways = _listed(sizes, k) if can_list(sizes, k) else _drawn(sizes, k)
    return ways, np.asarray(stats.multivariate_hypergeom.logpmf(ways, sizes, k), np.float64)


def can_list(sizes: IntArray, k: int) -> bool:
    """Whether the ways to fill the top are few enough to be listed."""
    return math.comb(k + len(sizes) - 1, len(sizes) - 1) <= _ENUMERATED


def _p_of_one(count: tuple[int, ...], size: tuple[int, ...]) -> float:
    from scipy import stats

    chance = stats.multivariate_hypergeom.logpmf(count, size, sum(count))
    ordered, reached = _reached(size, sum(count))
    place = np.searchsorted(ordered, chance + _EQUAL, side="right")
    if can_list(np.array(size), sum(count)):
        return float(reached[place])
    return float((1 + place) / (1 + len(ordered)))


@lru_cache(maxsize=256)
def _reached(sizes: tuple[int, ...], k: int) -> tuple[Float64Array, Float64Array]:
    """(W,) logarithms of probabilities, ascending, and (W + 1,) the sum of those before each."""
    _, chances = ways_of(np.array(sizes), k)
    ordered = np.sort(chances)
    return ordered, np.concatenate([[0.0], np.cumsum(np.exp(ordered))])


def _listed(sizes: IntArray, k: int) -> IntArray:
    ways = np.zeros((1, 0), np.int64)
    for size in sizes[:-1]:
        remaining = k - ways.sum(axis=1)
        counts = np.concatenate([np.arange(min(int(size), int(most)) + 1) for most in remaining])
        repeats = np.minimum(int(size), remaining) + 1
        ways = np.column_stack([np.repeat(ways, repeats, axis=0), counts])
    ways = np.column_stack([ways, k - ways.sum(axis=1)])
    return ways[ways[:, -1] <= sizes[-1]]


def _drawn(sizes: IntArray, k: int) -> IntArray:
    return np.random.default_rng(0).multivariate_hypergeometric(sizes, k, _DRAWN)
