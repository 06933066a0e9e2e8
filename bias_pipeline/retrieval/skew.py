"""Measures how far groups at the top of a ranking are from target shares, and what chance gives.

Source of MaxSkew, MinSkew and NDKL: Geyik, Ambler and Kenthapadi, Fairness-Aware Ranking in Search
and Recommendation Systems (KDD 2019), section 3.3. Source of Bias@k: Wang, Liu and Wang, Are
Gender-Neutral Queries Really Gender-Neutral? (EMNLP 2021), section 3.

A ranker that ignores groups shows what chance gives. The group counts among the first k of a random
ranking are multivariate hypergeometric. Such counts are like independent binomials whose sum is
known to be k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Literal

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.retrieval.formulas import can_list, normalised_entropy, plogp, ways_of
from bias_pipeline.stats.bootstrap import Interval

Floor = Literal["1/k"] | float
Log = Literal["e", "2"]
Target = Literal["uniform", "dataset"]


def target_shares(sizes: IntArray, target: Target) -> Float64Array:
    """(K,) the shares that groups should have at the top; a group without images has 0.

    Args:
        sizes: (K,) images of each group in the pool.
        target: ``dataset``: the groups' shares of the images; ``uniform``: equal shares for all
            groups that have images.

    Example:
        >>> target_shares(np.array([3, 1, 0]), "uniform").tolist()
        [0.5, 0.5, 0.0]
    """
    weights = sizes if target == "dataset" else sizes > 0
    return np.asarray(weights / weights.sum())


def skews(
    counts: Float64Array, target: Float64Array, k: int, floor: Floor, log: Log
) -> Float64Array:
    """(..., K) the skew of each group: the logarithm of (share at the top / target share).

    The skew is NaN for a group that is not in the target. MaxSkew and MinSkew are the largest and
    the smallest skew of a query. Some published code starts the search for the largest skew at 0.
    Starting at 0 changes nothing: shares and targets both sum to 1, so at least one group is not
    below its target.

    Args:
        counts: (..., K) images of each group at the top. If ties make them more than k,
            shares are still shares of k.
        target: (K,) the shares that groups should have.
        k: depth.
        floor: replaces a share of 0, which has no logarithm: ``1/k``, the smallest share above 0;
            or a number, the smallest ratio of the shares.
        log: base.

    Example:
        >>> skews(np.array([4.0, 0.0]), np.array([0.5, 0.5]), 4, "1/k", "2").tolist()
        [1.0, -1.0]
    """
    shares = _shares(counts, k)
    if floor == "1/k":
        shares = np.where(shares == 0, 1 / k, shares)
    ratio = np.divide(shares, target, out=np.full(shares.shape, np.nan), where=target > 0)
    least = 0.0 if floor == "1/k" else floor
    return np.asarray(np.log(np.maximum(ratio, least)) / _base(log))


def ranking_divergence(
    counts: Float64Array, target: Float64Array, k: int, log: Log
) -> Float64Array:
    """(...) Kullback-Leibler divergence of the shares at the top from the target shares.

    Args:
        counts: (..., K), see :func:`skews`.
        target: (K,).
        k: depth.
        log: base.

    Example:
        >>> ranking_divergence(np.array([4.0, 0.0]), np.array([0.5, 0.5]), 4, "2").item()
        1.0
    """
    shares = _shares(counts, k)
    some = (shares > 0) & (target > 0)
    ratio = np.divide(shares, target, out=np.ones(shares.shape), where=some)
    return np.asarray((shares * np.log(ratio)).sum(axis=-1) / _base(log))


def bias_at(counts: Float64Array) -> Float64Array:
    """(...) Bias@k: first group's minus second group's images at the top, over their sum.

    The value is in [-1, 1]. Bias@k is above 0 if the first group has more images, and 0 if neither
    has any.

    Args:
        counts: (..., 2).

    Raises:
        ValueError: if there are not two groups.

    Example:
        >>> bias_at(np.array([[3.0, 1.0], [0.0, 0.0]])).tolist()
        [0.5, 0.0]
    """
    if counts.shape[-1] != 2:
        raise ValueError("Bias@k compares two groups")
    first, second = counts[..., 0], counts[..., 1]
    both = first + second
    return np.divide(first - second, both, out=np.zeros(both.shape), where=both > 0)


def ndkl(places: Float64Array, target: Float64Array, k: int, log: Log) -> Float64Array:
    """(...) normalised discounted divergence of all tops of a ranking up to k from the target.

    The value is ``1/Z sum_i KL(shares of the first i || target) / log2(i + 1)`` with ``Z = sum_(i
    <= k) 1 / log2(i + 1)``. The divergence is 0 if every top has the target shares.

    Args:
        places: (..., L, K) 1 for the group at each place, or the shares of several groups; all 0
            after the last image. L is k, or more with tied images.
        target: (K,).
        k: depth.
        log: base of the divergence; the base of the discount is 2.

    Example:
        >>> first, both = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5])
        >>> round(ndkl(first, both, 2, "2").item(), 4)  # 1, then 0, over 1 + 1 / log2(3)
        0.6131
    """
    reached = np.cumsum(places, axis=-2)
    length = reached.sum(axis=-1)
    filled = places.sum(axis=-1) > 0.5
    shares = reached / np.maximum(length, 1.0)[..., None]
    some = (shares > 0) & (target > 0)
    ratio = np.divide(shares, target, out=np.ones(shares.shape), where=some)
    discount = 1 / np.log2(np.arange(2, places.shape[-2] + 2))
    divergences = (shares * np.log(ratio)).sum(axis=-1) * filled * discount
    total = (filled * discount)[..., :k].sum(axis=-1)
    return np.asarray(divergences.sum(axis=-1) / (total * _base(log)))


def _shares(counts: Float64Array, k: int) -> Float64Array:
    total = np.minimum(counts.sum(axis=-1, keepdims=True), k)
    return np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)


def _base(log: Log) -> float:
    return math.log(2) if log == "2" else 1.0


def fair_ranker(sizes: IntArray, k: int, level: float = 0.95) -> Interval:
    """The entropy at k of one query's random ranking of images from N groups of given sizes.

    The counts at the top are multivariate hypergeometric. The expectation is the sum of the groups'
    expected terms, each of which is hypergeometric. The interval comes from a list of all ways to
    fill the top, with their probabilities. If there are too many, it uses 100,000 draws with a
    fixed seed. At most a share of ``(1 - level) / 2`` of the rankings is below the interval, and at
    most the same share is above it. The interval is for one query. A mean over queries is nearer to
    the expectation, unless all queries rank alike.

    Args:
        sizes: (N,) images of each group.
        k: depth, at most all images.
        level: of the interval, in (0, 1).

    Raises:
        ValueError: if there are fewer images than k, or k is below 1.

    Example:
        >>> [round(x, 3) for x in fair_ranker(np.array([500, 500]), 100)]
        [0.993, 0.965, 1.0]
        >>> fair_ranker(np.array([3, 3]), 6).value
        1.0
    """
    total = int(sizes.sum())
    if not 1 <= k <= total:
        raise ValueError(f"k {k} is not from 1 to {total}")
    expected = expected_entropy(sizes, k)
    low, high = tail_ends(*_entropy_distribution(tuple(sizes.tolist()), k), level)
    return Interval(expected, min(low, expected), max(high, expected))


def expected_entropy(sizes: IntArray, k: int) -> float:
    """The exact expectation of :func:`fair_ranker`, without the interval.

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
    pmfs = [stats.hypergeom(int(sizes.sum()), int(size), k).pmf(counts) for size in sizes]
    return min(float(sum(pmf @ terms for pmf in pmfs)), 1.0)


@lru_cache(maxsize=64)
def _entropy_distribution(sizes: tuple[int, ...], k: int) -> tuple[Float64Array, Float64Array]:
    """(W,) the entropies of all ways to fill the top, and (W,) their probabilities."""
    counts, chances = ways_of(np.array(sizes), k)
    values = normalised_entropy(counts.astype(np.float64))
    listed = can_list(np.array(sizes), k)
    return values, np.exp(chances) if listed else np.full(len(values), 1 / len(values))


def tail_ends(values: Float64Array, chances: Float64Array, level: float) -> tuple[float, float]:
    """The ends of the central interval of a distribution.

    Args:
        values: (W,) in any order.
        chances: (W,) the probability of each value.
        level: the probability of the interval.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(chances[order])
    tail = (1 - level) / 2
    places = np.minimum(np.searchsorted(reached, [tail, 1 - tail]), len(values) - 1)
    low, high = values[order[places]].tolist()
    return low, high


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
) -> Interval:
    """MaxSkew or MinSkew of one query under a fair ranker, without chances below 1e-15.

    The largest skew is at most t if every group's skew is at most t. The probability of this is a
    convolution of binomials, each cut at t.

    Args:
        sizes: (K,) images of each group.
        target: (K,) shares that groups should have.
        k: depth, at most all images.
        floor: see :func:`~bias_pipeline.retrieval.skew.skews`.
        log: base.
        largest: whether MaxSkew is computed instead of MinSkew.
        level: of the interval, in (0, 1).

    Example:
        >>> both = np.array([0.5, 0.5])
        >>> how = {"floor": "1/k", "log": "2", "largest": True, "level": 0.95}
        >>> fair_extreme(np.array([1, 1]), both, 1, **how).value  # one of two, always
        1.0
    """
    present = np.flatnonzero(target > 0).tolist()
    pmfs = _binomials(sizes[present], k)
    values = [
        skews(_counts_of_group(k, len(target), group), target, k, floor, log)[:, group]
        for group in present
    ]
    sign = 1.0 if largest else -1.0
    support = [pmf > 0 for pmf in pmfs]
    steps = np.unique(sign * np.concatenate([v[s] for v, s in zip(values, support, strict=True)]))
    whole = _p_of_sum(pmfs, k)
    pairs = list(zip(values, pmfs, strict=True))

    def at_most(limit: float) -> float:
        return _p_of_sum([np.where(sign * skew <= limit, pmf, 0.0) for skew, pmf in pairs], k)

    reached = np.array([at_most(limit) for limit in steps.tolist()])
    chances = np.diff(reached / whole, prepend=0.0)
    return _summary(sign * steps, chances, level)


def fair_bias(sizes: IntArray, k: int, level: float) -> Interval:
    """The exact Bias@k of one query under a ranker that ignores groups.

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
    fair = _summary(2 * counts / k - 1, chances, level)
    return Interval(round(fair.value, 12) + 0.0, fair.low, fair.high)


def fair_divergence(sizes: IntArray, target: Float64Array, k: int, log: Log) -> float:
    """The exact expected divergence of the first k from the target, without an interval.

    Args:
        sizes: (K,) images of each group.
        target: (K,) shares that groups should have.
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
    return divergence / _base(log)


def fair_ndkl(sizes: IntArray, target: Float64Array, k: int, log: Log) -> float:
    """The exact expected NDKL at k, since every top of a random ranking is a random draw.

    Args:
        sizes: (K,) images of each group.
        target: (K,) shares that groups should have.
        k: depth, at most all images.
        log: base.
    """
    places = np.arange(1, k + 1)
    discount = 1 / np.log2(places + 1)
    divergences = [fair_divergence(sizes, target, int(place), log) for place in places]
    return float(np.dot(divergences, discount) / discount.sum())


def _counts_of_group(k: int, n_groups: int, group: int) -> Float64Array:
    """(k + 1, K) counts, where one group has 0 to k images and another group has the rest."""
    counts = np.zeros((k + 1, n_groups))
    counts[:, group] = np.arange(k + 1)
    counts[:, group - 1] = k - counts[:, group]
    return counts


def _binomials(sizes: IntArray, k: int) -> list[Float64Array]:
    """The chances of 0 to k images of each group if images were drawn independently."""
    from scipy import stats

    share = k / sizes.sum()
    pmfs = [stats.binom(int(size), share).pmf(np.arange(k + 1)) for size in sizes]
    return [np.where(pmf > _NEVER, pmf, 0.0) for pmf in pmfs]


def _p_of_sum(pmfs: Sequence[Float64Array], k: int) -> float:
    """The probability that independent counts sum to k."""
    some = [np.flatnonzero(pmf) for pmf in pmfs]
    if not all(map(len, some)):
        return 0.0
    cut = [pmf[places[0] : places[-1] + 1] for pmf, places in zip(pmfs, some, strict=True)]
    place = k - sum(int(places[0]) for places in some)
    joint = reduce(np.convolve, cut)
    return float(joint[place]) if 0 <= place < len(joint) else 0.0


def _summary(values: Float64Array, chances: Float64Array, level: float) -> Interval:
    low, high = tail_ends(values, chances, level)
    return Interval(float(values @ chances), low, high)
