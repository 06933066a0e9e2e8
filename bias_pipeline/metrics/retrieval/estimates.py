"""Fairness of all queries together and of each alone: intervals, and p of being fair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.functional.exact_counts import p_of_counts, permuted
from bias_pipeline.metrics.parts import SCORE, PartName
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, summary, widened

FloatArray = npt.NDArray[np.float64]


def fairness_of(
    ranked: Sequence[Ranked],
    names: Sequence[str],
    corpus: Corpus,
    stats: Bootstrap,
) -> dict[PartName, Estimate]:
    """The mean and each concept, images resampled; each with the p of being fair.

    A single query is held against the exact law of the groups that a fair one retrieves, all
    together against permuted labels: entropy does not tell which group is retrieved too often.

    Where more than half of the images are at the top, resampling draws images that are there
    already; intervals are then no wider than entropies of permuted labels scatter.

    Args:
        ranked: of S seeds, C queries each.
        names: of the queries.
        corpus: the rows of which are ranked.
        stats: of the intervals.
    """
    rows = np.unique(np.concatenate([own.images.ravel() for own in ranked]))
    parts = [PartName("concept", object=name) for name in names]

    def evaluate(weights: FloatArray) -> dict[PartName, FloatArray]:
        entropies = np.stack([own.entropies(weights, rows) for own in ranked], axis=-1)  # (B, C, S)
        each = {part: entropies[:, number] for number, part in enumerate(parts)}
        return {SCORE: np.nanmean(entropies, axis=1), **each}

    estimates = stats.estimate_weighted(corpus.keys[rows], evaluate)
    counts = np.stack([own.top_counts for own in ranked])
    sizes = np.stack([own.sizes for own in ranked])
    k = ranked[0].k
    fair = [permuted(own.top(), own.sizes, k, own.top_counts) for own in ranked]
    if 2 * k > sizes.sum(axis=1).min():
        spread = np.mean([[own.score_std, *own.concept_std] for own in fair], axis=0)
        estimates = {
            part: _narrowed(estimates[part], std, stats.level)
            for part, std in zip((SCORE, *parts), spread.tolist(), strict=True)
        }
    several = 2.0 if len(fair) > 1 else 1.0
    p_value = min(several * float(np.mean([own.p_value for own in fair])), 1.0)
    each = zip(parts, p_of_counts(counts, sizes, k).tolist(), strict=True)
    return {
        SCORE: replace(estimates[SCORE], p_value=p_value),
        **{part: replace(_spanned(estimates[part]), p_value=p) for part, p in each},
    }


def _narrowed(estimate: Estimate, std: float, level: float) -> Estimate:
    """The same with an interval of at most this spread over images."""
    if not estimate.image_std > std:
        return estimate
    return summary(widened(estimate.draws, std / estimate.image_std), level)


def _spanned(estimate: Estimate) -> Estimate:
    """The same without an interval where no resampling moved it: it tells nothing of others."""
    if estimate.image_std > 0:
        return estimate
    return replace(estimate, ci_low=math.nan, ci_high=math.nan)
