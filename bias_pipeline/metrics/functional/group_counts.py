"""Are the groups at the top of a ranking those of a blind draw? Exact tests of their counts."""

from __future__ import annotations

import math
import sys
from functools import lru_cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ENUMERATED = 200_000  # ways to fill the top that are listed one by one
_DRAWN = 100_000  # such ways that are drawn where there are more
_EQUAL = 1e-7  # chances whose logarithms differ by less are one


def p_of_counts(counts: IntArray, sizes: IntArray) -> FloatArray:
    """(C,) exact two-sided p of the groups that queries retrieve, if groups are nothing to them.

    The counts of a blind draw are hypergeometric, of more than two groups multivariate
    hypergeometric. p is the chance of all counts that are no likelier than those observed. Where
    there are too many to list, it rests on 100,000 draws with a fixed seed, the observed one
    counted among them.

    Several splits of one data set share images, so their p depend on one another in an unknown
    way; twice their mean holds whatever it is (Ruschendorf 1982; Vovk and Wang 2020).

    Args:
        counts: (S, C, K) images of each group at the top, by split and query.
        sizes: (S, K) images of each group that are retrieved from.

    Example:
        >>> p_of_counts(np.array([[[0, 2], [1, 1]]]), np.array([[2, 2]])).round(4).tolist()
        [0.3333, 1.0]
    """
    found = np.array(
        [
            [_p_of_one(tuple(count), tuple(size)) for count in split]
            for split, size in zip(counts.tolist(), sizes.tolist(), strict=True)
        ]
    )
    several = 2.0 if len(found) > 1 else 1.0
    return np.clip(several * found.mean(axis=0), sys.float_info.min, 1.0)


def excess(counts: FloatArray, sizes: IntArray | FloatArray) -> FloatArray:
    """(..., C, K) by how many images each group is above its share of those retrieved from.

    Args:
        counts: (..., C, K) images of each group at the top.
        sizes: (..., K) images of each group that are retrieved from.

    Example:
        >>> excess(np.array([[8.0, 2.0]]), np.array([50, 50])).tolist()
        [[3.0, -3.0]]
    """
    shares = sizes / sizes.sum(axis=-1, keepdims=True)
    found: FloatArray = counts - counts.sum(axis=-1, keepdims=True) * shares[..., None, :]
    return found


def standardised(deviations: FloatArray, shares: FloatArray) -> FloatArray:
    """(..., K) deviations of counts in units that a blind draw gives to all groups alike.

    Args:
        deviations: (..., K) see :func:`excess`.
        shares: (K,) of the groups; one without images deviates by 0.
    """
    spread = np.sqrt(shares * (1 - shares))
    some = spread > 0
    return np.divide(deviations, spread, out=np.zeros(deviations.shape), where=some)


def finite_population(n: int, k: int) -> float:
    """The factor by which drawing k of n without putting back narrows a count's spread, in [0, 1].

    Example:
        >>> finite_population(101, 1), finite_population(100, 100)
        (1.0, 0.0)
    """
    return math.sqrt((n - k) / (n - 1)) if n > 1 else 0.0


def ways_of(sizes: IntArray, k: int) -> tuple[IntArray, FloatArray]:
    """(W, K) counts of a blind draw of k images, and (W,) the logarithms of their chances.

    All ways to fill the top; where they are too many, 100,000 that were drawn with a fixed seed.

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
def _reached(sizes: tuple[int, ...], k: int) -> tuple[FloatArray, FloatArray]:
    """(W,) logarithms of chances, ascending, and (W + 1,) the chance of all before each."""
    _, chances = ways_of(np.array(sizes), k)
    ordered = np.sort(chances)
    return ordered, np.concatenate([[0.0], np.cumsum(np.exp(ordered))])


def _listed(sizes: IntArray, k: int) -> IntArray:
    ways = np.zeros((1, 0), np.int64)
    for size in sizes[:-1]:
        left = k - ways.sum(axis=1)
        counts = np.concatenate([np.arange(min(int(size), int(most)) + 1) for most in left])
        repeats = np.minimum(int(size), left) + 1
        ways = np.column_stack([np.repeat(ways, repeats, axis=0), counts])
    ways = np.column_stack([ways, k - ways.sum(axis=1)])
    return ways[ways[:, -1] <= sizes[-1]]


def _drawn(sizes: IntArray, k: int) -> IntArray:
    return np.random.default_rng(0).multivariate_hypergeometric(sizes, k, _DRAWN)
