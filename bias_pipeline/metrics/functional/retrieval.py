"""Whom a query retrieves: rankings, and the entropy of the groups at their top.

Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 3.1.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Ties = Literal["stable", "all", "expected"]

_BLOCK = 65_536  # images whose similarities are in memory at once


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
    entropy = -plogp(shares).sum(axis=-1) / math.log(n_groups)
    found: FloatArray = np.clip(entropy, 0.0, 1.0) + 0.0  # no zero below zero
    return found


def plogp(shares: FloatArray) -> FloatArray:
    """(...) p log p, 0 at 0."""
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
    best: list[tuple[IntArray, npt.NDArray[np.float32]]] = []
    for start in range(0, len(items), _BLOCK):
        near = queries @ np.asarray(items[start : start + _BLOCK]).T
        best = _merged(best, near, start, depth)
    rows, scores = (np.stack(own) for own in zip(*best, strict=True))
    return np.take_along_axis(rows, np.lexsort((rows, -scores), axis=1), 1)


def _merged(
    best: list[tuple[IntArray, npt.NDArray[np.float32]]],
    near: npt.NDArray[np.float32],
    start: int,
    depth: int,
) -> list[tuple[IntArray, npt.NDArray[np.float32]]]:
    """Of each query the rows, ascending, and similarities of the nearest so far and of a block.

    What is not nearer than the last of enough is passed over: a later one of equal ones comes
    after it, and few of a block are nearer, so most is only compared once.
    """
    if not best or len(best[0][0]) < depth:
        hits = np.ones(near.shape, bool)
    else:
        hits = near > np.array([own.min() for _, own in best], np.float32)[:, None]
    found = []
    for query, own in enumerate(hits):
        places = np.flatnonzero(own)
        rows, scores = places + start, near[query, places]
        if best:
            before, nearness = best[query]
            rows, scores = np.concatenate([before, rows]), np.concatenate([nearness, scores])
        kept = _largest(scores, min(depth, len(scores)))
        found.append((rows[kept], scores[kept]))
    return found


def _largest(scores: npt.NDArray[np.float32], count: int) -> IntArray:
    """(count,) places of the largest, ascending; of equal ones the first."""
    if count == len(scores):
        return np.arange(count)
    least = np.partition(scores, -count)[-count]
    above, level = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([above, level[: count - len(above)]]))


def weighted_counts(
    weights: FloatArray,
    groups: IntArray,
    n_groups: int,
    k: int,
    ties: Ties = "stable",
    blocks: IntArray | None = None,
) -> FloatArray:
    """(B, N) how many of the first k of a ranking belong to each group.

    Args:
        weights: (B, M) how often each item of the ranking counts, from its top on, in B
            resamplings; where they come to fewer than k, all that there are count.
        groups: (M,) the items' groups.
        n_groups: N.
        k: depth.
        ties: what of equally near items counts where only some have room: ``stable``: the first of
            them; ``expected``: of each as much as it would on average in all their orders; ``all``:
            each of them, so there may be more than k.
        blocks: (M,) numbers from 0 on that equally near items share; None: none are.

    Example:
        >>> weighted_counts(np.array([[1.0, 0.0, 2.0]]), np.array([0, 1, 1]), 2, 2)
        array([[1., 1.]])
        >>> tied = {"ties": "expected", "blocks": np.array([0, 1, 1])}
        >>> weighted_counts(np.ones((1, 3)), np.array([0, 0, 1]), 2, 2, **tied)
        array([[1.5, 0.5]])
    """
    found: FloatArray = counted_places(weights, k, ties, blocks) @ np.eye(n_groups)[groups]
    return found


def counted_places(
    weights: FloatArray, k: int, ties: Ties = "stable", blocks: IntArray | None = None
) -> FloatArray:
    """(B, M) how much each place of a ranking counts among the first k.

    Args:
        weights: see :func:`weighted_counts`.
        k: see there.
        ties: see there.
        blocks: see there.

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
    found: FloatArray = weights * (np.ceil(part) if ties == "all" else part)[:, blocks]
    return found


def weighted_places(
    weights: FloatArray,
    groups: IntArray,
    n_groups: int,
    k: int,
    ties: Ties = "stable",
    blocks: IntArray | None = None,
) -> FloatArray:
    """(B, L, N) which group is at each of the first places of a ranking.

    A line a place with 1 for its group, or, with ``ties=expected``, the shares of those that are
    equally near; 0 throughout where there is nobody. L is k, and more where ``ties=all`` adds some.

    Args:
        weights: see :func:`weighted_counts`; whole numbers.
        groups: see there.
        n_groups: see there.
        k: see there.
        ties: see there.
        blocks: see there.

    Example:
        >>> weighted_places(np.array([[2.0, 1.0]]), np.array([1, 0]), 2, 3)[0].tolist()
        [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    """
    own = np.eye(n_groups)[groups]
    lengths = np.minimum(weights.sum(axis=1), k)
    if blocks is not None and ties == "all":
        lengths = weighted_counts(weights, groups, n_groups, k, ties, blocks).sum(axis=1)
    ends = np.cumsum(weights.sum(axis=1))
    items = np.repeat(np.tile(np.arange(len(groups)), len(weights)), weights.ravel().astype(int))
    steps = np.arange(int(lengths.max(initial=0)))
    places = (ends - weights.sum(axis=1)).astype(int)[:, None] + steps
    there = steps < lengths[:, None]
    chosen = items[np.where(there, places, 0)] if len(items) else np.zeros(there.shape, int)
    found = own[chosen]
    if blocks is not None and ties == "expected":
        starts = _starts(blocks)
        totals = np.add.reduceat(weights, starts, axis=1)[..., None]
        sums = np.add.reduceat(weights[..., None] * own, starts, axis=1)
        means = np.divide(sums, totals, out=np.zeros(sums.shape), where=totals > 0)
        found = np.take_along_axis(means, blocks[chosen][..., None], axis=1)
    return np.where(there[..., None], found, 0.0)


def _starts(blocks: IntArray) -> IntArray:
    return np.flatnonzero(np.diff(blocks, prepend=-1))


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
