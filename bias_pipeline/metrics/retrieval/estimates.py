"""Fairness of all queries together and of each alone: intervals, and p of being fair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.functional.group_counts import finite_population, p_of_counts
from bias_pipeline.metrics.parts import SCORE, PartName
from bias_pipeline.metrics.retrieval.permuted import permuted_p
from bias_pipeline.metrics.retrieval.ranked import Ranked
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, summary

FloatArray = npt.NDArray[np.float64]


def fairness_of(
    ranked: Sequence[Ranked], names: Sequence[str], corpus: Corpus, stats: Bootstrap
) -> dict[PartName, Estimate]:
    """The mean and each concept, images resampled; each with the p of being fair.

    The mean's p is that of permuted labels, a concept's that of the exact count of the groups that
    it retrieves; of permuted labels too where equally near images count in part
    (``ties=expected``), since there is no count then.

    Args:
        ranked: of S seeds, C queries each.
        names: of the queries.
        corpus: the rows of which are ranked.
        stats: of the intervals; labels are permuted as often as images are resampled.
    """
    parts = [PartName("concept", object=name) for name in names]

    def evaluate(found: FloatArray) -> dict[PartName, FloatArray]:
        each = {part: found[:, number] for number, part in enumerate(parts)}
        return {SCORE: np.nanmean(found, axis=1), **each}

    rows = np.unique(np.concatenate([own.images.ravel() for own in ranked]))
    found = narrowed(
        stats.estimate_weighted(
            corpus.keys[rows], lambda weights: evaluate(entropies(ranked, weights, rows))
        ),
        ranked,
        stats.level,
    )
    of_all, of_each = permuted_p(ranked, corpus.keys, stats.resamples, stats.seed)
    counts = np.stack([own.top_counts for own in ranked])
    if (counts == np.round(counts)).all():
        of_each = p_of_counts(counts.astype(np.int64), np.stack([own.sizes for own in ranked]))
    each = zip(parts, of_each.tolist(), strict=True)
    return {
        SCORE: replace(found[SCORE], p_value=of_all),
        **{part: replace(_spanned(found[part]), p_value=p_value) for part, p_value in each},
    }


def entropies(
    ranked: Sequence[Ranked], weights: FloatArray, rows: npt.NDArray[np.int64]
) -> FloatArray:
    """(B, C, S) normalised entropies, images weighted; see :meth:`Ranked.entropies`."""
    return np.stack([own.entropies(weights, rows) for own in ranked], axis=-1)


def narrowed(
    estimates: Mapping[PartName, Estimate], ranked: Sequence[Ranked], level: float
) -> dict[PartName, Estimate]:
    """The estimates with the spread of a draw of k from a finite number of images.

    Resampling draws the images that are retrieved from anew, and with them their groups' shares;
    where k is near their number the top is nearly all of them, and what it holds hardly varies. The
    variance over images is that of resampling times ``(N - k) / (N - 1)``, as a blind draw's is.
    Draws stay as they are: the difference of two rankings of the same images needs no factor, since
    their tops share the more images the nearer k is to N.

    Args:
        estimates: of numbers of the groups at the top, with their draws.
        ranked: of S seeds.
        level: of the intervals.
    """
    factor = float(np.mean([finite_population(len(own.pool), own.k) for own in ranked]))
    return {name: _scaled(own, factor, level) for name, own in estimates.items()}


def _scaled(estimate: Estimate, factor: float, level: float) -> Estimate:
    draws = estimate.draws
    assert draws is not None
    value = draws.per_seed
    near = replace(draws, resampled=value + factor * (draws.resampled - value))
    return replace(summary(near, level), draws=draws)


def _spanned(estimate: Estimate) -> Estimate:
    """The same without an interval where no resampling moved it: it tells nothing of others."""
    if estimate.image_std > 0:
        return estimate
    return replace(estimate, ci_low=math.nan, ci_high=math.nan)
