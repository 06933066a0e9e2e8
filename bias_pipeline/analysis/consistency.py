"""Do two attackers, or two metrics, reach the same conclusions?

ImageCaptioner2 (section 5.5.2): the share of captioners on which two classifiers disagree whether
they amplify at all (conflict score), and the correlation of the two rankings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from bias_pipeline.analysis.attacker_variants import Variants
from bias_pipeline.analysis.sensitivity import Interval, within
from bias_pipeline.array_types import BoolArray, Float64Array

FEWEST_CORRELATED = 3  # captioners


@dataclass(frozen=True)
class Agreement:
    """The agreement of two variants.

    Attributes:
        first: the name of one variant.
        second: the name of the other.
        conflicts: share of captioners that one calls biased and the other does not, in [0, 1].
        conflicting: their names.
        pearson: correlation of scores, in [-1, 1]; NaN for fewer than three captioners, since two
            points always lie on a line.
        spearman: of ranks.
        kendall: tau-b.
    """

    first: str
    second: str
    conflicts: Interval
    conflicting: tuple[str, ...]
    pearson: Interval
    spearman: Interval
    kendall: Interval


def conflicts(values: Float64Array, neutral: Float64Array) -> BoolArray:
    """Whether two variants disagree about bias: one is above neutral, the other is not.

    Args:
        values: (..., C, 2) scores.
        neutral: (2,) scores that mean no bias.

    Returns:
        (..., C).

    Example:
        >>> conflicts(np.array([[3.7, -0.8], [5.1, 0.3]]), np.zeros(2)).tolist()
        [True, False]
    """
    above = values > neutral
    disagree: BoolArray = above[..., 0] != above[..., 1]
    return disagree


def agreements(scores: Variants, level: float = 0.95) -> list[Agreement]:
    """The agreement of every two variants, with percentile intervals over images.

    Args:
        scores: of all captioners.
        level: of intervals, in (0, 1).
    """
    pairs = combinations(range(len(scores.variants)), 2)
    return [_agreement(_of_two(scores, pair), level) for pair in pairs]


def _of_two(scores: Variants, pair: Sequence[int]) -> Variants:
    at = list(pair)
    return Variants(
        scores.setting,
        scores.captioners,
        tuple(scores.variants[i] for i in at),
        scores.values[:, at],
        scores.neutral[at],
        scores.resampled[..., at],
    )


def _agreement(scores: Variants, level: float) -> Agreement:
    intervals = within(scores, lambda values: _numbers(values, scores.neutral), level)
    disagree = conflicts(scores.values, scores.neutral)
    return Agreement(
        scores.variants[0],
        scores.variants[1],
        intervals[0],
        tuple(name for name, conflict in zip(scores.captioners, disagree, strict=True) if conflict),
        *intervals[1:],
    )


def _numbers(values: Float64Array, neutral: Float64Array) -> Float64Array:
    """(..., 4) conflict score, Pearson, Spearman, Kendall of (..., C, 2) scores."""
    share = conflicts(values, neutral).mean(axis=-1)
    if values.shape[-2] < FEWEST_CORRELATED:
        absent = np.full_like(share, np.nan)
        return np.stack([share, absent, absent, absent], axis=-1)
    ranks = stats.rankdata(values, axis=-2)
    return np.stack([share, _pearson(values), _pearson(ranks), _kendall(values)], axis=-1)


def _pearson(values: Float64Array) -> Float64Array:
    """(...) correlation of the two columns of (..., C, 2) numbers; NaN where one is constant."""
    centred = values - values.mean(axis=-2, keepdims=True)
    return _cosine(centred[..., 0], centred[..., 1])


def _kendall(values: Float64Array) -> Float64Array:
    """(...) tau-b: how often two captioners are ordered alike, corrected for ties."""
    one, two = np.triu_indices(values.shape[-2], 1)
    signs = np.sign(values[..., one, :] - values[..., two, :])
    return _cosine(signs[..., 0], signs[..., 1])


def _cosine(one: Float64Array, two: Float64Array) -> Float64Array:
    lengths = np.sqrt((one**2).sum(axis=-1) * (two**2).sum(axis=-1))
    product = (one * two).sum(axis=-1)
    return np.divide(product, lengths, out=np.full_like(lengths, np.nan), where=lengths > 0)
