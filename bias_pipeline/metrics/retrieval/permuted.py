"""Permutation tests of rankings: labels of images are permuted, rankings stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.hashing import UIntArray, derived_seed
from bias_pipeline.metrics.functional.group_counts import excess
from bias_pipeline.metrics.retrieval.ranked import Ranked

_BATCH_CELLS = 4_000_000  # labels of retrieved images that are in memory at once
_EQUAL = 1e-9  # statistics that differ by a smaller share are equal


def permuted_p(
    ranked: Sequence[Ranked], keys: UIntArray, permutations: int, seed: int
) -> tuple[float, Float64Array]:
    """P of all queries together, and (C,) of each, if rankings ignore groups.

    The labels of the images that are retrieved from are permuted, in the same way in every split,
    and rankings stay as they are, so the test is valid however queries depend on one another. A
    query's statistic is the sum over groups of the squared deviation of its mean count from the
    expected one, divided by the group's share; that of all queries is the sum of theirs. Unlike
    entropy it depends on the direction in which each query leans. p is ``(1 + b) / (1 + B)``, where
    b of B permutations have a statistic no smaller than the observed one.

    Args:
        ranked: of S splits, C queries each.
        keys: hashes of the ids of all images, so that the order of images does not matter.
        permutations: B.
        seed: of the permutations.
    """
    rows, codes = _labelled(ranked, keys)
    shares = np.bincount(codes, minlength=len(ranked[0].sizes)) / len(codes)
    observed = _statistics(ranked, rows, codes[None], shares)[0]  # (C,)
    total, each = 0, np.zeros(len(observed), np.int64)
    for labels in _permutations(codes, permutations, seed, _cells(ranked)):
        statistics = _statistics(ranked, rows, labels, shares)
        total += int((statistics.sum(axis=1) >= observed.sum() * (1 - _EQUAL)).sum())
        each += (statistics >= observed * (1 - _EQUAL)).sum(axis=0)
    return (1 + total) / (1 + permutations), (1 + each) / (1 + permutations)


def mean_excess(ranked: Sequence[Ranked]) -> Float64Array:
    """(C, K) by how many images each group is above its share of the pool, the mean over splits."""
    excesses = [excess(ranking.top_counts, ranking.sizes) for ranking in ranked]
    return np.asarray(np.mean(excesses, axis=0))


def _labelled(ranked: Sequence[Ranked], keys: UIntArray) -> tuple[IntArray, IntArray]:
    """(I,) rows of all images that are retrieved from, in the order of their keys; their groups."""
    rows, first = np.unique(np.concatenate([ranking.pool for ranking in ranked]), return_index=True)
    codes = np.concatenate([ranking.codes for ranking in ranked])[first]
    order = np.argsort(keys[rows], kind="stable")
    return rows[order], codes[order]


def _cells(ranked: Sequence[Ranked]) -> int:
    return max(max(ranking.images.size, len(ranking.pool)) for ranking in ranked)


def _permutations(codes: IntArray, number: int, seed: int, cells: int) -> Iterator[IntArray]:
    """(b, I) permuted labels, batch by batch, ``number`` lines in all."""
    random = np.random.default_rng(derived_seed("permute", seed, 0))
    batch = max(1, _BATCH_CELLS // cells)
    for start in range(0, number, batch):
        lines = min(batch, number - start)
        yield random.permuted(np.broadcast_to(codes, (lines, len(codes))), axis=1)


def _statistics(
    ranked: Sequence[Ranked], rows: IntArray, labels: IntArray, shares: Float64Array
) -> Float64Array:
    """(B, C) statistics of queries under B labellings of the images."""
    places = np.zeros(int(rows.max()) + 1, np.int64)
    places[rows] = np.arange(len(rows))
    mean: Float64Array = np.zeros((len(labels), len(ranked[0].images), len(shares)))
    for ranking in ranked:
        counted = ranking.counted
        top = labels[:, places[ranking.images[:, : counted.shape[1]]]]  # (B, C, D)
        counts = _counts(top, np.broadcast_to(counted, top.shape), len(shares))
        pool = labels[:, places[ranking.pool]]
        sizes = _counts(pool, np.ones(pool.shape), len(shares))
        mean += excess(counts, sizes) / len(ranked)
    some = shares > 0
    totals: Float64Array = (mean[..., some] ** 2 / shares[some]).sum(axis=-1)
    return totals


def _counts(labels: IntArray, weights: Float64Array, n_groups: int) -> Float64Array:
    """(..., K) how often each label occurs in the last axis, weighted."""
    lines = np.arange(labels[..., 0].size).reshape(labels.shape[:-1])[..., None] * n_groups
    sums = np.bincount((lines + labels).ravel(), weights.ravel(), labels[..., 0].size * n_groups)
    return np.asarray(sums, np.float64).reshape(*labels.shape[:-1], n_groups)
