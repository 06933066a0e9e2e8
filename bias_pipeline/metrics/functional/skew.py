"""How far the groups at the top of a ranking are from the target shares.

MaxSkew, MinSkew and NDKL: Geyik, Ambler and Kenthapadi, Fairness-Aware Ranking in Search and
Recommendation Systems (KDD 2019), section 3.3. Bias@k: Wang, Liu and Wang, Are Gender-Neutral
Queries Really Gender-Neutral? (EMNLP 2021), section 3.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray

Floor = Literal["1/k"] | float
Log = Literal["e", "2"]
Target = Literal["uniform", "dataset"]


def target_shares(sizes: IntArray, target: Target) -> Float64Array:
    """(K,) the shares that groups should have at the top; 0 for a group that has no image.

    Args:
        sizes: (K,) images of each group that are retrieved from.
        target: ``dataset``: their shares of the images; ``uniform``: equal for all that have any.

    Example:
        >>> target_shares(np.array([3, 1, 0]), "uniform").tolist()
        [0.5, 0.5, 0.0]
    """
    weights = sizes if target == "dataset" else sizes > 0
    return np.asarray(weights / weights.sum())


def skews(
    counts: Float64Array, target: Float64Array, k: int, floor: Floor, log: Log
) -> Float64Array:
    """(..., K) each group's skew: the logarithm of its share at the top over the target's.

    NaN for a group that is not in the target. MaxSkew and MinSkew are the largest and smallest of a
    line. Some codes start the search for the largest at 0. This changes nothing, as shares and
    targets both sum to 1, so at least one group is not below its target.

    Args:
        counts: (..., K) how many of the top belong to each group. If ties make them more than k,
            shares are still of k.
        target: (K,) the shares that they should have.
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
    """(...) Kullback-Leibler divergence of the shares at the top from the target.

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
    """(...) Bias@k: the first group's images at the top minus the second's, over those of both.

    In [-1, 1], above 0 where the first has more, 0 where neither has any.

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

    ``1/Z sum_i KL(shares of the first i || target) / log2(i + 1)`` with
    ``Z = sum_(i <= k) 1 / log2(i + 1)``; 0 where every top is as the target.

    Args:
        places: (..., L, K) 1 for the group at each place, or shares of several; all 0 after the
            last. L is k, or more with tied images.
        target: (K,).
        k: depth.
        log: base of the divergence; the discount's is 2.

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
