"""Computes fairness and skews of all queries together and of each query, with intervals and p.

Permutation tests permute the labels of images; rankings stay. The skews are MaxSkew, MinSkew,
Bias@k, NDKL and the divergence of rankings. Every choice in them is a parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import UIntArray, derived_seed
from bias_pipeline.metrics.base import Number
from bias_pipeline.metrics.value_names import SCORE, PartName
from bias_pipeline.retrieval import skew
from bias_pipeline.retrieval.formulas import excess, finite_population, p_of_counts
from bias_pipeline.retrieval.ranked import Ranked
from bias_pipeline.retrieval.skew import (
    Floor,
    Log,
    Target,
    bias_at,
    ranking_divergence,
    skews,
    target_shares,
)
from bias_pipeline.stats.bootstrap import (
    Bootstrap,
    Estimate,
    Interval,
    drop_void_interval,
    summary,
    with_p_value,
)

Item = TypeVar("Item")
_BATCH_CELLS = 4_000_000  # how many labels of retrieved images are in memory at once
_EQUAL = 1e-9  # statistics whose relative difference is smaller count as equal


@dataclass(frozen=True)
class Folds:
    """Says which splits belong to the same seed; the folds of a seed divide the images."""

    seeds: Sequence[int]  # the seed of each split

    @property
    def has_several(self) -> bool:
        return len(self.seeds) > len(set(self.seeds))

    def of_each_seed(self, items: Sequence[Item]) -> list[list[Item]]:
        """The items of each seed.

        Example:
            >>> Folds((7, 7, 8)).of_each_seed("abc")
            [['a', 'b'], ['c']]
        """
        folds: dict[int, list[Item]] = {}
        for seed, item in zip(self.seeds, items, strict=True):
            folds.setdefault(seed, []).append(item)
        return list(folds.values())

    def by_seed(self, values: Sequence[Float64Array]) -> Float64Array:
        """(..., S) the mean over the folds of each seed, from values (...) of each split."""
        means = [np.mean(of_seed, axis=0) for of_seed in self.of_each_seed(values)]
        return np.stack(means, axis=-1)


def permuted_p(
    ranked: Sequence[Ranked], keys: UIntArray, permutations: int, seed: int
) -> tuple[float, Float64Array]:
    """The p of all queries together and (C,) the p of each query, against unbiased rankings.

    The null is that rankings ignore groups. The labels of the images in the pool are permuted, in
    the same way in every split, while rankings stay. So the test is valid even if queries depend on
    one another. The statistic of a query is a sum over groups: the squared deviation of its mean
    count from the expected count, divided by the group's share. The statistic of all queries is the
    sum of these statistics. Unlike entropy, this statistic depends on the direction in which each
    query leans. p is ``(1 + b) / (1 + B)``, where b of B permutations have a statistic at least as
    large as observed.
    """
    rows, codes = _retrieved_labels(ranked, keys)
    shares = np.bincount(codes, minlength=len(ranked[0].sizes)) / len(codes)
    observed = _statistics(ranked, rows, codes[None], shares)[0]  # (C,)
    total, each = 0, np.zeros(len(observed), np.int64)
    cells = max(max(ranking.images.size, len(ranking.pool)) for ranking in ranked)
    for labels in _permutations(codes, permutations, seed, cells):
        statistics = _statistics(ranked, rows, labels, shares)
        total += int((statistics.sum(axis=1) >= observed.sum() * (1 - _EQUAL)).sum())
        each += (statistics >= observed * (1 - _EQUAL)).sum(axis=0)
    return (1 + total) / (1 + permutations), (1 + each) / (1 + permutations)


def retrieved_rows(ranked: Sequence[Ranked]) -> IntArray:
    """(I,) the rows of all images in the rankings, in ascending order."""
    return np.unique(np.concatenate([ranking.images.ravel() for ranking in ranked]))


def mean_excess(ranked: Sequence[Ranked]) -> Float64Array:
    """(C, K) how many images each group has beyond its share of the pool, over splits."""
    excesses = [excess(ranking.top_counts, ranking.sizes) for ranking in ranked]
    return np.asarray(np.mean(excesses, axis=0))


def _retrieved_labels(ranked: Sequence[Ranked], keys: UIntArray) -> tuple[IntArray, IntArray]:
    """(I,) the rows of all images in the pool, by their keys, and (I,) their groups."""
    rows, first = np.unique(np.concatenate([ranking.pool for ranking in ranked]), return_index=True)
    codes = np.concatenate([ranking.codes for ranking in ranked])[first]
    order = np.argsort(keys[rows], kind="stable")
    return rows[order], codes[order]


def _permutations(codes: IntArray, number: int, seed: int, cells: int) -> Iterator[IntArray]:
    """(b, I) permuted labels in batches; all batches together have ``number`` lines."""
    random = np.random.default_rng(derived_seed("permute", seed, 0))
    batch = max(1, _BATCH_CELLS // cells)
    for start in range(0, number, batch):
        lines = min(batch, number - start)
        yield random.permuted(np.broadcast_to(codes, (lines, len(codes))), axis=1)


def _statistics(
    ranked: Sequence[Ranked], rows: IntArray, labels: IntArray, shares: Float64Array
) -> Float64Array:
    """(B, C) the statistic of each query for B labellings of the images."""
    places = np.zeros(int(rows.max()) + 1, np.int64)
    places[rows] = np.arange(len(rows))
    mean: Float64Array = np.zeros((len(labels), len(ranked[0].images), len(shares)))
    for ranking in ranked:
        counted = ranking.place_counts
        top = labels[:, places[ranking.images[:, : counted.shape[1]]]]  # (B, C, D)
        counts = _counts(top, np.broadcast_to(counted, top.shape), len(shares))
        pool = labels[:, places[ranking.pool]]
        sizes = _counts(pool, np.ones(pool.shape), len(shares))
        mean += excess(counts, sizes) / len(ranked)
    some = shares > 0
    return np.asarray((mean[..., some] ** 2 / shares[some]).sum(axis=-1))


def _counts(labels: IntArray, weights: Float64Array, n_groups: int) -> Float64Array:
    """(..., K) the sum of weights of each label in the last axis."""
    lines = np.arange(labels[..., 0].size).reshape(labels.shape[:-1])[..., None] * n_groups
    sums = np.bincount((lines + labels).ravel(), weights.ravel(), labels[..., 0].size * n_groups)
    return np.asarray(sums, np.float64).reshape(*labels.shape[:-1], n_groups)


def fairness_of(
    ranked: Sequence[Ranked], names: Sequence[str], corpus: Corpus, stats: Bootstrap, folds: Folds
) -> dict[PartName, Estimate]:
    """The fairness of all queries and of each concept, with intervals and p.

    Intervals resample images. The p of the mean comes from permuted labels. The p of a concept
    comes from the exact test of the groups that it retrieves. With ``ties=expected``, equally near
    images count in part, so counts are not whole. The p of a concept then also comes from permuted
    labels.
    """
    parts = [PartName("concept", object=name) for name in names]

    def evaluate(table: Float64Array) -> dict[PartName, Float64Array]:
        each = {part: table[:, number] for number, part in enumerate(parts)}
        return {SCORE: np.nanmean(table, axis=1), **each}

    rows = retrieved_rows(ranked)
    sampled = stats.estimate_weighted(
        corpus.keys[rows],
        lambda weights: evaluate(
            folds.by_seed([ranking.entropies(weights, rows) for ranking in ranked])
        ),
    )
    estimates = narrow_intervals(sampled, ranked, stats.level)
    of_all, of_each = permuted_p(ranked, corpus.keys, stats.resamples, stats.seed)
    # With split.test_share=1 all seeds may be the same
    by_content = {
        (np.sort(ranking.pool).tobytes(), ranking.top_counts.tobytes()): ranking
        for ranking in ranked
    }
    apart = list(by_content.values())
    counts = np.stack([ranking.top_counts for ranking in apart])
    if (counts == np.round(counts)).all():
        of_each = p_of_counts(
            counts.astype(np.int64), np.stack([ranking.sizes for ranking in apart])
        )
    each = zip(parts, of_each.tolist(), strict=True)
    return {
        SCORE: replace(estimates[SCORE], p_value=of_all),
        **{
            part: replace(drop_void_interval(estimates[part]), p_value=p_value)
            for part, p_value in each
        },
    }


def narrow_intervals(
    estimates: Mapping[PartName, Estimate], ranked: Sequence[Ranked], level: float
) -> dict[PartName, Estimate]:
    """The estimates, with intervals for a draw of k from a finite number of images.

    Resampling also changes the groups' shares of all images. If k is near the number of images, the
    top has nearly all images and varies little. The variance over images is therefore the variance
    under resampling times ``(N - k) / (N - 1)``, as for a random draw. The draws do not change,
    since the difference of two rankings of the same images needs no factor: if k is near N, their
    tops share most images.
    """
    factor = float(np.mean([finite_population(len(ranking.pool), ranking.k) for ranking in ranked]))
    near = {}
    for name, estimate in estimates.items():
        draws = estimate.draws
        assert draws is not None
        spread = factor * (draws.resampled - draws.per_seed)
        scaled = replace(draws, resampled=draws.per_seed + spread)
        near[name] = replace(summary(scaled, level), draws=draws)
    return near


MAX, MIN, BIAS, NDKL, KL = (
    PartName("skew", detail=name) for name in ("max", "min", "bias", "ndkl", "kl")
)


@dataclass(frozen=True)
class Skews:
    """The settings of skews, which :mod:`bias_pipeline.retrieval.skew` explains."""

    target: Target  # what the groups' shares at the top should be
    log: Log  # the base of logarithms
    floor: Floor  # replaces a share of 0

    def values(
        self, ranked: Ranked, weights: Float64Array, rows: IntArray | None = None
    ) -> dict[PartName, Float64Array]:
        """(B, C) the value of each skew for each query, by name; images have weights."""
        wanted, k = target_shares(ranked.sizes, self.target), ranked.k
        counts = ranked.counts(weights, rows)
        group_skews = skews(counts, wanted, k, self.floor, self.log)
        some = group_skews[..., wanted > 0]
        values = {
            MAX: some.max(axis=-1),
            MIN: some.min(axis=-1),
            NDKL: ranked.ndkl(weights, rows, wanted, self.log),
            KL: ranking_divergence(counts, wanted, k, self.log),
        }
        return values | ({BIAS: bias_at(counts)} if len(wanted) == 2 else {})

    def parts(
        self,
        ranked: Sequence[Ranked],
        corpus: Corpus,
        stats: Bootstrap,
        tested: tuple[int, float],
        folds: Folds,
    ) -> dict[str, Number]:
        """The mean of each skew over queries, and its null, the value of a ranker without bias."""
        rows = retrieved_rows(ranked)

        def evaluate(weights: Float64Array) -> Mapping[PartName, Float64Array]:
            values = [self.values(ranking, weights, rows) for ranking in ranked]
            return {
                name: folds.by_seed([of_fold[name].mean(axis=1) for of_fold in values])
                for name in values[0]
            }

        nulls = self._nulls(ranked, stats.level)
        parts: dict[str, Number] = {}
        estimates = stats.estimate_weighted(corpus.keys[rows], evaluate)
        # NDKL averages over all tops up to k, and the shortest tops are far from all images.
        near = {name: estimate for name, estimate in estimates.items() if name != NDKL}
        for name, estimate in {**estimates, **narrow_intervals(near, ranked, stats.level)}.items():
            null = nulls[name]
            beside_null = estimate if math.isnan(null.value) else with_p_value(estimate, null.value)
            unit, span = "nats" if self.log == "e" else "bits", _RANGES[name]
            if name == BIAS:
                unit = "fraction"
            number = partial(Number, unit=unit, n_images=tested[0], coverage=tested[1], range=span)
            parts[name] = number(**vars(beside_null), neutral=null.value)
            if not math.isnan(null.value):
                parts[PartName("null", detail=name)] = number(
                    null.value, ci_low=null.low, ci_high=null.high
                )
        return parts

    def _nulls(self, ranked: Sequence[Ranked], level: float) -> dict[PartName, Interval]:
        """The nulls, averaged over splits, or NaN if ties decide the first k."""
        if any(ranking.cut for ranking in ranked):
            absent = Interval(math.nan, math.nan, math.nan)
            return dict.fromkeys((MAX, MIN, BIAS, NDKL, KL), absent)
        rankers = [
            _fair_rankers(self, tuple(ranking.sizes.tolist()), ranking.k, level)
            for ranking in ranked
        ]
        return {
            name: Interval(*np.mean([ranker[name] for ranker in rankers], axis=0).tolist())
            for name in rankers[0]
        }


_RANGES = {
    MAX: (0.0, math.inf),
    MIN: (-math.inf, math.inf),  # a floor can lift it above 0
    NDKL: (0.0, math.inf),
    KL: (0.0, math.inf),
    BIAS: (-1.0, 1.0),
}


@lru_cache(maxsize=64)
def _fair_rankers(
    how: Skews, sizes: tuple[int, ...], k: int, level: float
) -> dict[PartName, Interval]:
    of, nan = np.array(sizes), math.nan
    wanted = target_shares(of, how.target)
    ends = {
        name: skew.fair_extreme(of, wanted, k, how.floor, how.log, largest=name == MAX, level=level)
        for name in (MAX, MIN)
    }
    means = {
        NDKL: Interval(skew.fair_ndkl(of, wanted, k, how.log), nan, nan),
        KL: Interval(skew.fair_divergence(of, wanted, k, how.log), nan, nan),
    }
    two = {BIAS: skew.fair_bias(of, k, level)} if len(sizes) == 2 else {}
    return {**ends, **means, **two}
