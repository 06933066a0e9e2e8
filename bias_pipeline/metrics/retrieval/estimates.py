"""Fairness of all queries together and of each alone, with intervals and p against fairness."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.functional.fair_ranker import FairRanker
from bias_pipeline.metrics.functional.group_counts import finite_population, p_of_counts
from bias_pipeline.metrics.retrieval.permuted import permuted_p
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.metrics.value_names import SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, summary

NULL = PartName("null")


def with_null(
    estimates: Mapping[PartName, Estimate], null: FairRanker
) -> list[tuple[PartName, Estimate, float | None]]:
    """Names, estimates and neutral values of all parts; that of a fair ranker comes second."""
    nan = math.nan
    fair = Estimate(null.expected, nan, nan, null.low, null.high, nan, n_seeds=0)
    named = [
        (name, estimate, None if name.what == "recall" else null.expected)
        for name, estimate in estimates.items()
    ]
    return [named[0], (NULL, fair, None), *named[1:]]


def fairness_of(
    ranked: Sequence[Ranked], names: Sequence[str], corpus: Corpus, stats: Bootstrap
) -> dict[PartName, Estimate]:
    """The mean and each concept, images resampled; each with a p against fairness.

    The mean's p permutes labels; a concept's is the exact test of the groups that it retrieves. If
    equally near images count in part (``ties=expected``) there are no whole counts, and a concept's
    p permutes labels too.

    Args:
        ranked: of S seeds, C queries each.
        names: of the queries.
        corpus: whose rows are ranked.
        stats: of the intervals; labels are permuted as often as images are resampled.
    """
    parts = [PartName("concept", object=name) for name in names]

    def evaluate(table: Float64Array) -> dict[PartName, Float64Array]:
        each = {part: table[:, number] for number, part in enumerate(parts)}
        return {SCORE: np.nanmean(table, axis=1), **each}

    rows = np.unique(np.concatenate([ranking.images.ravel() for ranking in ranked]))
    estimates = narrowed(
        stats.estimate_weighted(
            corpus.keys[rows], lambda weights: evaluate(entropies(ranked, weights, rows))
        ),
        ranked,
        stats.level,
    )
    of_all, of_each = permuted_p(ranked, corpus.keys, stats.resamples, stats.seed)
    apart = _distinct(ranked)
    counts = np.stack([ranking.top_counts for ranking in apart])
    if (counts == np.round(counts)).all():
        of_each = p_of_counts(
            counts.astype(np.int64), np.stack([ranking.sizes for ranking in apart])
        )
    each = zip(parts, of_each.tolist(), strict=True)
    return {
        SCORE: replace(estimates[SCORE], p_value=of_all),
        **{part: replace(_spanned(estimates[part]), p_value=p_value) for part, p_value in each},
    }


def _distinct(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The rankings without duplicates: with ``split.test_share=1`` all seeds may be the same."""
    by_content = {
        (np.sort(ranking.pool).tobytes(), ranking.top_counts.tobytes()): ranking
        for ranking in ranked
    }
    return list(by_content.values())


def entropies(ranked: Sequence[Ranked], weights: Float64Array, rows: IntArray) -> Float64Array:
    """(B, C, S) normalised entropies, images weighted; see :meth:`Ranked.entropies`."""
    return np.stack([ranking.entropies(weights, rows) for ranking in ranked], axis=-1)


def narrowed(
    estimates: Mapping[PartName, Estimate], ranked: Sequence[Ranked], level: float
) -> dict[PartName, Estimate]:
    """The estimates with the spread of a draw of k from a finite number of images.

    Resampling also changes the groups' shares of all images. If k is near the number of images, the
    top is nearly all of them and hardly varies. So the variance over images is that of resampling
    times ``(N - k) / (N - 1)``, as for a random draw. The draws stay as they are: the difference of
    two rankings of the same images needs no factor, since their tops share more images the nearer
    k is to N.

    Args:
        estimates: of numbers of the groups at the top, with their draws.
        ranked: of S seeds.
        level: of the intervals.
    """
    factor = float(np.mean([finite_population(len(ranking.pool), ranking.k) for ranking in ranked]))
    return {name: _scaled(estimate, factor, level) for name, estimate in estimates.items()}


def _scaled(estimate: Estimate, factor: float, level: float) -> Estimate:
    draws = estimate.draws
    assert draws is not None
    value = draws.per_seed
    near = replace(draws, resampled=value + factor * (draws.resampled - value))
    return replace(summary(near, level), draws=draws)


def _spanned(estimate: Estimate) -> Estimate:
    """The estimate, without an interval if no resampling moved it."""
    if estimate.image_std > 0:
        return estimate
    return replace(estimate, ci_low=math.nan, ci_high=math.nan)
