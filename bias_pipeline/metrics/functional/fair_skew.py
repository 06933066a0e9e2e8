"""Skews and divergences under a ranker that ignores groups.

The groups of the first k of a random ranking are multivariate hypergeometric: like independent
binomials, given that they sum to k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.metrics.functional.fair_ranker import FairRanker, tail_ends
from bias_pipeline.metrics.functional.skew import Floor, Log, skews

_NEVER = 1e-15  # smaller probabilities are left out


def fair_extreme(
    sizes: IntArray,
    target: Float64Array,
    k: int,
    floor: Floor,
    log: Log,
    *,
    largest: bool,
    level: float,
) -> FairRanker:
    """MaxSkew or MinSkew of one query, exact but for probabilities below 1e-15.

    The largest of the groups' skews is at most t if each group's skew is; the probability of that
    is a convolution of the binomials, each cut at t.

    Args:
        sizes: (K,) images of each group.
        target: (K,) shares that they should have.
        k: depth, at most all images.
        floor: see :func:`~bias_pipeline.metrics.functional.skew.skews`.
        log: base.
        largest: MaxSkew; else MinSkew.
        level: of the interval, in (0, 1).

    Example:
        >>> both = np.array([0.5, 0.5])
        >>> how = {"floor": "1/k", "log": "2", "largest": True, "level": 0.95}
        >>> fair_extreme(np.array([1, 1]), both, 1, **how).expected  # one of two, always
        1.0
    """
    present = np.flatnonzero(target > 0).tolist()
    laws = _binomials(sizes[present], k)
    values = [
        skews(_alone(k, len(target), group), target, k, floor, log)[:, group] for group in present
    ]
    sign = 1.0 if largest else -1.0
    support = [law > 0 for law in laws]
    steps = np.unique(sign * np.concatenate([v[s] for v, s in zip(values, support, strict=True)]))
    whole = _meeting(laws, k)
    pairs = list(zip(values, laws, strict=True))

    def at_most(limit: float) -> float:
        return _meeting([np.where(sign * skew <= limit, law, 0.0) for skew, law in pairs], k)

    reached = np.array([at_most(limit) for limit in steps.tolist()])
    chances = np.diff(reached / whole, prepend=0.0)
    return _summary(sign * steps, chances, level)


def fair_bias(sizes: IntArray, k: int, level: float) -> FairRanker:
    """Bias@k of one query, exact.

    Args:
        sizes: (2,) images of each group.
        k: depth, at most all images.
        level: of the interval, in (0, 1).

    Example:
        >>> [round(x, 2) for x in fair_bias(np.array([50, 50]), 10, 0.95)]
        [0.0, -0.6, 0.6]
    """
    from scipy import stats

    counts = np.arange(k + 1)
    chances = stats.hypergeom(int(sizes.sum()), int(sizes[0]), k).pmf(counts)
    law = _summary(2 * counts / k - 1, chances, level)
    return FairRanker(round(law.expected, 12) + 0.0, law.low, law.high)


def fair_divergence(sizes: IntArray, target: Float64Array, k: int, log: Log) -> float:
    """The exact expected divergence of the first k from the target, without an interval.

    Args:
        sizes: (K,) images of each group.
        target: (K,) shares that they should have.
        k: depth, at most all images.
        log: base.

    Example:
        >>> fair_divergence(np.array([1, 1]), np.array([0.5, 0.5]), 1, "2")
        1.0
    """
    from scipy import stats

    shares, total = np.arange(k + 1) / k, int(sizes.sum())
    divergence = 0.0
    for size, wanted in zip(sizes.tolist(), target.tolist(), strict=True):
        if wanted > 0:
            terms = shares * np.log(np.where(shares > 0, shares / wanted, 1.0))
            divergence += float(stats.hypergeom(total, size, k).pmf(np.arange(k + 1)) @ terms)
    return divergence / (math.log(2) if log == "2" else 1.0)


def fair_ndkl(sizes: IntArray, target: Float64Array, k: int, log: Log) -> float:
    """The exact expected NDKL at k: every top of a random ranking is a random draw.

    Args:
        sizes: (K,) images of each group.
        target: (K,) shares that they should have.
        k: depth, at most all images.
        log: base.
    """
    places = np.arange(1, k + 1)
    discount = 1 / np.log2(places + 1)
    divergences = [fair_divergence(sizes, target, int(place), log) for place in places]
    return float(np.dot(divergences, discount) / discount.sum())


def _alone(k: int, n_groups: int, group: int) -> Float64Array:
    """(k + 1, K) counts in which a group has 0 to k images and another one the rest."""
    counts = np.zeros((k + 1, n_groups))
    counts[:, group] = np.arange(k + 1)
    counts[:, group - 1] = k - counts[:, group]
    return counts


def _binomials(sizes: IntArray, k: int) -> list[Float64Array]:
    """For each group the probabilities of 0 to k images if images were drawn independently."""
    from scipy import stats

    share = k / sizes.sum()
    laws = [stats.binom(int(size), share).pmf(np.arange(k + 1)) for size in sizes]
    return [np.where(law > _NEVER, law, 0.0) for law in laws]


def _meeting(laws: Sequence[Float64Array], k: int) -> float:
    """The probability that independent counts sum to k."""
    starts, cut = zip(*(_trimmed(law) for law in laws), strict=True)
    if any(not len(trimmed) for trimmed in cut):
        return 0.0
    place = k - sum(starts)
    joint = reduce(np.convolve, cut)
    return float(joint[place]) if 0 <= place < len(joint) else 0.0


def _trimmed(law: Float64Array) -> tuple[int, Float64Array]:
    some = np.flatnonzero(law)
    return (int(some[0]), law[some[0] : some[-1] + 1]) if len(some) else (0, law[:0])


def _summary(values: Float64Array, chances: Float64Array, level: float) -> FairRanker:
    """Expectation and interval of a distribution."""
    low, high = tail_ends(values, chances, level)
    return FairRanker(float(values @ chances), low, high)
