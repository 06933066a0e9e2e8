"""Ranks images for queries, and computes the entropy of the groups at the top, with exact tests.

Source: Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 3.1. The
tests ask whether the groups at the top could be the result of a random draw.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Literal

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray

Ties = Literal["stable", "all", "expected"]

_BLOCK = 65_536  # how many images have their similarities in memory at once


def normalised_entropy(counts: Float64Array) -> Float64Array:
    """(...) entropy of the groups at the top of a ranking, in [0, 1]; 1 if equally common.

    The entropy is ``-sum_j p_j log p_j / log N``, where p_j is group j's share. N counts every
    group of the attribute, also groups that were not retrieved, and 0 log 0 = 0. The entropy is NaN
    if nothing was retrieved. The retrieval metric is the mean entropy over queries.

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
    entropy = -plogp(shares).sum(axis=-1) / math.log(n_groups)
    return np.asarray(np.clip(entropy, 0.0, 1.0) + 0.0)  # no negative zero


def plogp(shares: Float64Array) -> Float64Array:
    """(...) p log p, which is 0 at 0."""
    logs = np.log(np.where(shares == 0, 1.0, shares))
    return np.asarray(shares * logs)


def top_ranks(queries: Float32Array, items: Float32Array, depth: int) -> IntArray:
    """(C, depth) the items with the largest dot product with each query, in falling order.

    Equally near items keep their order. Items are read in blocks, so they may be many and
    mapped from a file.

    Args:
        queries: (C, D).
        items: (N, D), N at least ``depth``.
        depth: how many items are returned for each query, at least 1.

    Raises:
        ValueError: if there are fewer items than ``depth``.

    Example:
        >>> items = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], np.float32)
        >>> top_ranks(np.array([[1.0, 0.1]], np.float32), items, 2)
        array([[1, 2]])
    """
    if not 1 <= depth <= len(items):
        raise ValueError(f"depth {depth} is not from 1 to {len(items)}")
    best: list[tuple[IntArray, Float32Array]] = []
    for start in range(0, len(items), _BLOCK):
        near = queries @ np.asarray(items[start : start + _BLOCK]).T
        best = _merge_nearest(best, near, start, depth)
    rows, scores = (np.stack(arrays) for arrays in zip(*best, strict=True))
    return np.take_along_axis(rows, np.lexsort((rows, -scores), axis=1), 1)


def _merge_nearest(
    best: list[tuple[IntArray, Float32Array]],
    near: Float32Array,
    start: int,
    depth: int,
) -> list[tuple[IntArray, Float32Array]]:
    """The rows (ascending) and similarities of each query's nearest items up to this block.

    One comparison skips an item that is not nearer than the worst of the ``depth`` nearest items so
    far. Of equally near items, the earlier item stays.
    """
    if not best or len(best[0][0]) < depth:
        hits = np.ones(near.shape, bool)
    else:
        hits = near > np.array([scores.min() for _, scores in best], np.float32)[:, None]
    merged = []
    for query, nearer in enumerate(hits):
        places = np.flatnonzero(nearer)
        rows, scores = places + start, near[query, places]
        if best:
            before, nearness = best[query]
            rows, scores = np.concatenate([before, rows]), np.concatenate([nearness, scores])
        top = _largest(scores, min(depth, len(scores)))
        merged.append((rows[top], scores[top]))
    return merged


def _largest(scores: Float32Array, count: int) -> IntArray:
    """(count,) the indices of the largest scores, ascending; the first of equal scores wins."""
    if count == len(scores):
        return np.arange(count)
    least = np.partition(scores, -count)[-count]
    above, level = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([above, level[: count - len(above)]]))


def weighted_counts(
    weights: Float64Array,
    groups: IntArray,
    n_groups: int,
    k: int,
    ties: Ties = "stable",
    blocks: IntArray | None = None,
) -> Float64Array:
    """(B, N) how many of the first k items of a ranking belong to each group.

    Args:
        weights: (B, M) how often each item of the ranking counts, from the top on, in B
            resamplings; if they sum to less than k, all items count.
        groups: (M,) the items' groups.
        n_groups: N.
        k: depth.
        ties: how equally near items count if only some fit: ``stable``: only the first items
            count; ``expected``: each counts as much as on average over all their orders;
            ``all``: all of them count, so there may be more than k.
        blocks: (M,) a number from 0 on for each item, which equally near items share; None: there
            are no ties.

    Example:
        >>> weighted_counts(np.array([[1.0, 0.0, 2.0]]), np.array([0, 1, 1]), 2, 2)
        array([[1., 1.]])
        >>> tied = {"ties": "expected", "blocks": np.array([0, 1, 1])}
        >>> weighted_counts(np.ones((1, 3)), np.array([0, 0, 1]), 2, 2, **tied)
        array([[1.5, 0.5]])
    """
    return np.asarray(counted_places(weights, k, ties, blocks) @ np.eye(n_groups)[groups])


def counted_places(
    weights: Float64Array, k: int, ties: Ties = "stable", blocks: IntArray | None = None
) -> Float64Array:
    """(B, M) how much each place of a ranking counts among the first k.

    The arguments are as in :func:`weighted_counts`.

    Example:
        >>> counted_places(np.array([[1.0, 0.0, 2.0]]), 2).tolist()
        [[1.0, 0.0, 1.0]]
    """
    if blocks is None or ties == "stable":
        reached = np.minimum(np.cumsum(weights, axis=1), k)
        return np.diff(reached, axis=1, prepend=0.0)
    totals = np.add.reduceat(weights, _starts(blocks), axis=1)
    room = np.clip(k - (np.cumsum(totals, axis=1) - totals), 0.0, totals)
    part = np.divide(room, totals, out=np.zeros(totals.shape), where=totals > 0)
    return np.asarray(weights * (np.ceil(part) if ties == "all" else part)[:, blocks])


def weighted_places(
    weights: Float64Array,
    groups: IntArray,
    n_groups: int,
    k: int,
    ties: Ties = "stable",
    blocks: IntArray | None = None,
) -> Float64Array:
    """(B, L, N) the group at each of the first places of a ranking.

    Each place has 1 for its group. With ``ties=expected`` it has the shares of the groups whose
    items are equally near. A place without an item is all 0. L is k, or more with ``ties=all``. The
    arguments are those of :func:`weighted_counts`, with whole numbers as weights.

    Example:
        >>> weighted_places(np.array([[2.0, 1.0]]), np.array([1, 0]), 2, 3)[0].tolist()
        [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    """
    one_hot = np.eye(n_groups)[groups]
    lengths = np.minimum(weights.sum(axis=1), k)
    if blocks is not None and ties == "all":
        lengths = weighted_counts(weights, groups, n_groups, k, ties, blocks).sum(axis=1)
    ends = np.cumsum(weights.sum(axis=1))
    items = np.repeat(np.tile(np.arange(len(groups)), len(weights)), weights.ravel().astype(int))
    steps = np.arange(int(lengths.max(initial=0)))
    places = (ends - weights.sum(axis=1)).astype(int)[:, None] + steps
    filled = steps < lengths[:, None]
    chosen = items[np.where(filled, places, 0)] if len(items) else np.zeros(filled.shape, int)
    shares = one_hot[chosen]
    if blocks is not None and ties == "expected":
        starts = _starts(blocks)
        totals = np.add.reduceat(weights, starts, axis=1)[..., None]
        sums = np.add.reduceat(weights[..., None] * one_hot, starts, axis=1)
        means = np.divide(sums, totals, out=np.zeros(sums.shape), where=totals > 0)
        shares = np.take_along_axis(means, blocks[chosen][..., None], axis=1)
    return np.where(filled[..., None], shares, 0.0)


def _starts(blocks: IntArray) -> IntArray:
    return np.flatnonzero(np.diff(blocks, prepend=-1))


def ranks_of_own(queries: Float32Array, items: Float32Array) -> IntArray:
    """(N,) the place, counted from 0, at which the i-th query retrieves the i-th item.

    Recall at k is the share of queries whose place is below k. Equally near items keep their order.

    Args:
        queries: (N, D).
        items: (N, D).

    Example:
        >>> ranks_of_own(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[::-1])
        array([1, 1])
    """
    places = np.empty(len(queries), np.int64)
    step = max(1, _BLOCK * 64 // max(len(items), 1))
    for start in range(0, len(queries), step):
        rows = np.arange(start, min(start + step, len(queries)))
        near = queries[rows] @ items.T
        target = near[np.arange(len(rows)), rows][:, None]
        before = np.arange(len(items)) < rows[:, None]
        places[rows] = ((near > target) | ((near == target) & before)).sum(axis=1)
    return places


_ENUMERATED = 200_000  # the most ways to fill the top that are listed one by one
_DRAWN = 100_000  # ways that are drawn if there are too many to list
_EQUAL = 1e-7  # probabilities whose logarithms differ by less count as equal


def p_of_counts(counts: IntArray, sizes: IntArray) -> Float64Array:
    """(C,) the exact two-sided p of the groups that each query retrieves.

    The null is that queries ignore groups. The counts of a random draw are then multivariate
    hypergeometric. p is the probability of all counts that are at most as likely as the observed
    counts. If there are too many counts to list, p is estimated from 100,000 draws with a fixed
    seed. The observed counts are added to the draws.

    Splits of one data set share images, so their p values are dependent in an unknown way. Twice
    their mean is a valid p under any dependence (Ruschendorf 1982, and Vovk and Wang 2020).

    Args:
        counts: (S, C, K) images of each group at the top, by split and query.
        sizes: (S, K) images of each group in the pool.

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
    """(..., C, K) how many images each group has at the top beyond its share of all images.

    Args:
        counts: (..., C, K) images of each group at the top.
        sizes: (..., K) images of each group in the pool.

    Example:
        >>> excess(np.array([[8.0, 2.0]]), np.array([50, 50])).tolist()
        [[3.0, -3.0]]
    """
    shares = sizes / sizes.sum(axis=-1, keepdims=True)
    return np.asarray(counts - counts.sum(axis=-1, keepdims=True) * shares[..., None, :])


def standard_scores(deviations: Float64Array, shares: Float64Array) -> Float64Array:
    """(..., K) deviations of counts, divided by each group's spread in a random draw.

    Args:
        deviations: (..., K) see :func:`excess`.
        shares: (K,) the groups' shares; a group without images has score 0.
    """
    spread = np.sqrt(shares * (1 - shares))
    return np.divide(deviations, spread, out=np.zeros(deviations.shape), where=spread > 0)


def finite_population(n: int, k: int) -> float:
    """The factor in [0, 1] by which a count's spread narrows when k of n are drawn at once.

    Example:
        >>> finite_population(101, 1), finite_population(100, 100)
        (1.0, 0.0)
    """
    return math.sqrt((n - k) / (n - 1)) if n > 1 else 0.0


def ways_of(sizes: IntArray, k: int) -> tuple[IntArray, Float64Array]:
    """(W, K) counts of a random draw of k images, and (W,) the logarithms of their chances.

    All ways to fill the top are listed. If there are too many, 100,000 are drawn with a fixed seed.

    Args:
        sizes: (K,) images of each group.
        k: how many images are drawn.
    """
    from scipy import stats

    if can_list(sizes, k):
        ways = _all_ways(sizes, k)
    else:
        ways = np.random.default_rng(0).multivariate_hypergeometric(sizes, k, _DRAWN)
    return ways, np.asarray(stats.multivariate_hypergeom.logpmf(ways, sizes, k), np.float64)


def can_list(sizes: IntArray, k: int) -> bool:
    """Whether the ways to fill the top are few enough to be listed."""
    return math.comb(k + len(sizes) - 1, len(sizes) - 1) <= _ENUMERATED


def _p_of_one(count: tuple[int, ...], size: tuple[int, ...]) -> float:
    from scipy import stats

    chance = stats.multivariate_hypergeom.logpmf(count, size, sum(count))
    ordered, reached = _chances_by_likelihood(size, sum(count))
    place = np.searchsorted(ordered, chance + _EQUAL, side="right")
    if can_list(np.array(size), sum(count)):
        return float(reached[place])
    return float((1 + place) / (1 + len(ordered)))


@lru_cache(maxsize=256)
def _chances_by_likelihood(sizes: tuple[int, ...], k: int) -> tuple[Float64Array, Float64Array]:
    """(W,) logarithms of probabilities, ascending, and (W + 1,) the sums of those before each."""
    _, chances = ways_of(np.array(sizes), k)
    ordered = np.sort(chances)
    return ordered, np.concatenate([[0.0], np.cumsum(np.exp(ordered))])


def _all_ways(sizes: IntArray, k: int) -> IntArray:
    ways = np.zeros((1, 0), np.int64)
    for size in sizes[:-1]:
        remaining = k - ways.sum(axis=1)
        counts = np.concatenate([np.arange(min(int(size), int(most)) + 1) for most in remaining])
        repeats = np.minimum(int(size), remaining) + 1
        ways = np.column_stack([np.repeat(ways, repeats, axis=0), counts])
    ways = np.column_stack([ways, k - ways.sum(axis=1)])
    return ways[ways[:, -1] <= sizes[-1]]
