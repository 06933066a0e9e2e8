"""Fairness of all queries together and of each alone: intervals, and p of being fair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.functional.fair_ranker import FairRanker, p_of_fair
from bias_pipeline.metrics.parts import SCORE, PartName
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, against

FloatArray = npt.NDArray[np.float64]


def fairness_of(
    ranked: Sequence[Ranked],
    names: Sequence[str],
    corpus: Corpus,
    null: FairRanker,
    stats: Bootstrap,
) -> dict[PartName, Estimate]:
    """The mean and each concept, images resampled; each with the p of being fair.

    The mean's p is its interval's. A single query is held against the law of a fair one itself:
    near its ends entropy hardly moves under resampling, whoever was retrieved.

    Args:
        ranked: of S seeds, C queries each.
        names: of the queries.
        corpus: the rows of which are ranked.
        null: what a fair ranker has.
        stats: of the intervals.
    """
    rows = np.unique(np.concatenate([own.images.ravel() for own in ranked]))
    parts = [PartName("concept", object=name) for name in names]

    def entropies(weights: FloatArray) -> FloatArray:
        return np.stack([own.entropies(weights, rows) for own in ranked], axis=-1)

    def evaluate(weights: FloatArray) -> dict[PartName, FloatArray]:
        found = entropies(weights)  # (B, C, S)
        each = {part: found[:, number] for number, part in enumerate(parts)}
        return {SCORE: np.nanmean(found, axis=1), **each}

    found = stats.estimate_weighted(corpus.keys[rows], evaluate)
    sizes = np.stack([own.sizes for own in ranked])
    p_values = p_of_fair(entropies(np.ones((1, len(rows))))[0].T, sizes, ranked[0].k)
    each = zip(parts, p_values.tolist(), strict=True)
    return {
        SCORE: against(found[SCORE], null.expected),
        **{part: replace(_spanned(found[part]), p_value=own) for part, own in each},
    }


def _spanned(estimate: Estimate) -> Estimate:
    """The same without an interval where no resampling moved it: it tells nothing of others."""
    if estimate.image_std > 0:
        return estimate
    return replace(estimate, ci_low=math.nan, ci_high=math.nan)
