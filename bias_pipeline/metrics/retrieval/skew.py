"""MaxSkew, MinSkew, Bias@k, NDKL and divergence of rankings, every choice a parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.base import Part
from bias_pipeline.metrics.functional import skew
from bias_pipeline.metrics.functional.skew import (
    FairRanker,
    Floor,
    Log,
    Target,
    bias_at,
    ranking_divergence,
    skews,
    target_shares,
)
from bias_pipeline.metrics.retrieval.estimates import narrowed
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, against

MAX, MIN, BIAS, NDKL, KL = (
    PartName("skew", detail=name) for name in ("max", "min", "bias", "ndkl", "kl")
)


@dataclass(frozen=True)
class Skews:
    """Settings of skews; see :mod:`bias_pipeline.metrics.functional.skew`."""

    target: Target  # what the groups' shares at the top should be
    log: Log  # base
    floor: Floor  # replaces a share of 0

    def values(
        self, ranked: Ranked, weights: Float64Array, rows: IntArray | None = None
    ) -> dict[PartName, Float64Array]:
        """Name to (B, C) numbers of each query, images weighted.

        Args:
            ranked: the rankings.
            weights: see :meth:`Ranked.counts`.
            rows: see there.
        """
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
        self, ranked: Sequence[Ranked], corpus: Corpus, stats: Bootstrap, tested: tuple[int, float]
    ) -> dict[str, Part]:
        """The means over queries, each with its null: the value of a ranker that ignores groups.

        Args:
            ranked: of each seed.
            corpus: whose rows they are.
            stats: how intervals are made.
            tested: how many images are retrieved from, and their share of those in a group.
        """
        rows = np.unique(np.concatenate([ranking.images.ravel() for ranking in ranked]))

        def evaluate(weights: Float64Array) -> Mapping[PartName, Float64Array]:
            values = [self.values(ranking, weights, rows) for ranking in ranked]
            return {
                name: np.stack([of_seed[name].mean(axis=1) for of_seed in values], axis=-1)
                for name in values[0]
            }

        nulls = self._nulls(ranked, stats.level)
        parts: dict[str, Part] = {}
        estimates = stats.estimate_weighted(corpus.keys[rows], evaluate)
        # NDKL averages over all tops up to k, the first of which are far from all images.
        near = {name: estimate for name, estimate in estimates.items() if name != NDKL}
        for name, estimate in {**estimates, **narrowed(near, ranked, stats.level)}.items():
            null = nulls[name]
            beside_null = (
                estimate if math.isnan(null.expected) else against(estimate, null.expected)
            )
            unit, span = ("fraction", (-1.0, 1.0)) if name == BIAS else (self._unit, _RANGES[name])
            parts[name] = Part(beside_null, unit, *tested, math.nan, span, null.expected)
            if not math.isnan(null.expected):
                fair = Estimate(
                    null.expected, math.nan, math.nan, null.low, null.high, math.nan, n_seeds=0
                )
                parts[PartName("null", detail=name)] = Part(fair, unit, *tested, math.nan, span)
        return parts

    @property
    def _unit(self) -> str:
        return "nats" if self.log == "e" else "bits"

    def _nulls(self, ranked: Sequence[Ranked], level: float) -> dict[PartName, FairRanker]:
        """The means over seeds; NaN if ties leave the first k undecided."""
        if any(ranking.cut for ranking in ranked):
            absent = FairRanker(math.nan, math.nan, math.nan)
            return dict.fromkeys((MAX, MIN, BIAS, NDKL, KL), absent)
        laws = [_laws(self, tuple(ranking.sizes.tolist()), ranking.k, level) for ranking in ranked]
        return {
            name: FairRanker(*np.mean([law[name] for law in laws], axis=0).tolist())
            for name in laws[0]
        }


_RANGES = {
    MAX: (0.0, math.inf),
    MIN: (-math.inf, math.inf),  # a floor can lift it above 0
    NDKL: (0.0, math.inf),
    KL: (0.0, math.inf),
}


@lru_cache(maxsize=64)
def _laws(how: Skews, sizes: tuple[int, ...], k: int, level: float) -> dict[PartName, FairRanker]:
    of, nan = np.array(sizes), math.nan
    wanted = target_shares(of, how.target)
    ends = {
        name: skew.fair_extreme(of, wanted, k, how.floor, how.log, largest=name == MAX, level=level)
        for name in (MAX, MIN)
    }
    means: Mapping[PartName, Callable[..., float]] = {
        NDKL: skew.fair_ndkl,
        KL: skew.fair_divergence,
    }
    rest = {
        name: FairRanker(expectation(of, wanted, k, how.log), nan, nan)
        for name, expectation in means.items()
    }
    two = {BIAS: skew.fair_bias(of, k, level)} if len(sizes) == 2 else {}
    return {**ends, **rest, **two}
