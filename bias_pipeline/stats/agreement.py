"""Agreement of raters beyond chance: Krippendorff's alpha, with intervals over images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray

_RESAMPLES = 1000
_LEAST_VALID = 0.9  # of resamples; with fewer there is no interval


class RaterAgreement(NamedTuple):
    """A coefficient with its interval; NaN where there is none."""

    value: float
    low: float
    high: float


def krippendorff(counts: IntArray, *, ordinal: bool = False) -> float:
    """Krippendorff's alpha: 1 - observed over expected disagreement.

    Of 1 if raters always agree, of 0 if they agree as often as by chance, below 0 if less often.
    Images with fewer than two answers do not count. Krippendorff, Content Analysis (2004), chapter
    11, and Computing Krippendorff's Alpha-Reliability (2011), whose example is a test.

    Args:
        counts: (N, K) how many raters gave each of K answers to each image.
        ordinal: whether the answers are ordered, so that near ones disagree less; else any two
            disagree alike.

    Returns:
        NaN if no image has two answers, or all answers are the same.

    Example:
        >>> krippendorff(np.array([[2, 0], [0, 2], [1, 1]]))
        0.4444444444444444
    """
    paired = counts[counts.sum(axis=1) > 1].astype(float)
    raters = paired.sum(axis=1, keepdims=True)  # (N, 1)
    weighted = paired / np.maximum(raters - 1, 1)
    together = weighted.T @ paired - np.diag(weighted.sum(axis=0))  # (K, K) coincidences
    totals = together.sum(axis=1)  # (K,)
    distances = _ordinal_distances(totals) if ordinal else 1.0 - np.eye(len(totals))
    expected = float((np.outer(totals, totals) * distances).sum())
    if not expected:
        return math.nan
    return float(1 - (totals.sum() - 1) * (together * distances).sum() / expected)


def _ordinal_distances(totals: Float64Array) -> Float64Array:
    """(K, K) squared distances: the answers between two, and half of these two themselves."""
    middle = np.cumsum(totals) - totals / 2
    squares: Float64Array = (middle[:, None] - middle) ** 2
    return squares


def fleiss(counts: IntArray) -> float:
    """Fleiss' kappa, with as many raters an image as there are (Fleiss, Levin and Paik 2003).

    Args:
        counts: (N, K) how many raters gave each of K answers to each image.

    Returns:
        NaN if no image has two answers, or all answers are the same.

    Example:
        >>> fleiss(np.array([[2, 0], [0, 2], [1, 1], [1, 1]]))
        0.0
    """
    paired = counts[counts.sum(axis=1) > 1]
    raters = paired.sum(axis=1)
    if not len(paired):
        return math.nan
    observed = ((paired * (paired - 1)).sum(axis=1) / (raters * (raters - 1))).mean()
    chance = float(((paired.sum(axis=0) / raters.sum()) ** 2).sum())
    return float((observed - chance) / (1 - chance)) if chance < 1 else math.nan


def with_interval(counts: IntArray, coefficient: Callable[[IntArray], float]) -> RaterAgreement:
    """A coefficient with its 95 % percentile interval over resampled images.

    Args:
        counts: (N, K) how many raters gave each of K answers to each image.
        coefficient: of such counts.
    """
    value, generator = coefficient(counts), np.random.default_rng(0)
    values = [
        coefficient(counts[generator.integers(0, len(counts), len(counts))])
        for _ in range(_RESAMPLES if len(counts) > 1 else 0)
    ]
    valid = [drawn for drawn in values if not math.isnan(drawn)]
    if len(valid) < max(1, _LEAST_VALID * _RESAMPLES):
        return RaterAgreement(value, math.nan, math.nan)
    low, high = np.quantile(valid, [0.025, 0.975])
    return RaterAgreement(value, float(low), float(high))


def answer_counts(ballots: Sequence[Sequence[str]], answers: Sequence[str]) -> IntArray:
    """(N, K) how many raters gave each answer to each image; other answers do not count.

    Example:
        >>> answer_counts([["yes", "no"], ["yes"]], ["no", "yes"]).tolist()
        [[1, 1], [0, 1]]
    """
    return np.array(
        [[list(votes).count(answer) for answer in answers] for votes in ballots], np.int64
    ).reshape(len(ballots), len(answers))
