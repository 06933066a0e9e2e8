"""Computes how differently captions describe two groups, beyond annotators' differences.

The captioner's difference theta in a concept is measured on comparable pictures
(:mod:`~bias_pipeline.metrics.functional.comparable`). Annotators' captions differ between the
groups too, and more so for frequent concepts. So the annotators' difference ``h`` **at the
captioner's rate** is subtracted. Let p be the captioner's rate, and q_s the joint rate of s
annotators, drawn at random from an image's K annotators.

* If p <= q_1, then h = t_1 p / q_1, where t_s is the difference that s annotators show.
* If q_s <= p <= q_{s+1}, then h is interpolated linearly between t_s and t_{s+1}.
* If p > q_K, then h = exp(-l) - exp(-l e^b) for each image. The log ratio b of the groups' hazards
  comes from a large set of human captions, and l solves e (1 - exp(-l e^b)) + (1 - e) (1 - exp(-l))
  = m, where m is the expected rate and e the expected group. If annotators hardly ever use a
  concept, h = 0. If no ratio is known, h is extrapolated by the annotators' joint hazards, up to 2
  K annotators. Beyond that, h is unknown.

All differences are a share of the second group's captions minus a share of the first group's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.metrics.functional.comparable import Comparison

HARDLY = 0.01  # annotators hardly ever say a concept up to this share of their captions
FURTHEST = 2  # hazards are extended to at most twice the number of annotators
_PRIOR = 2  # mentions without a difference that are added to annotators' mentions
_RATES = (0.0005, 0.97)  # lowest and highest rate of an image for which the equation is solved
_GROUPS = (0.02, 0.98)  # the same for the expected group of an image


class Reference(Enum):
    """The data from which the annotators' difference at the captioner's rate is computed."""

    ANNOTATORS = "as many of these annotators"
    RATIO = "annotators of a large set"
    HARDLY = "annotators hardly ever say it"
    UNKNOWN = "unknown: no annotators say it as often"
    ALONE = "annotators say it of one group alone"
    NONE = "no annotators"


@dataclass(frozen=True)
class HazardRatio:
    """How much more often annotators mention a concept for the second group (log hazard ratio)."""

    log_ratio: float
    error: float

    def difference(
        self, rates: Float64Array, expected: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """(N,): the groups' differences at (N,) rates, and their change per standard error.

        Example:
            >>> ratio = HazardRatio(0.0, 0.1)
            >>> difference, change = ratio.difference(np.array([0.2]), np.array([0.5]))
            >>> difference.round(3).tolist(), bool(change[0] > 0)
            ([0.0], True)
        """
        share = np.clip(expected, *_GROUPS)
        at = [_difference(rates, share, self.log_ratio + k * self.error) for k in (0, 1, -1)]
        return at[0], (at[1] - at[2]) / 2


def _difference(rates: Float64Array, share: Float64Array, log_ratio: float) -> Float64Array:
    """(N,): the differences between two groups that have the rates ``rates`` together."""
    low, high = np.full(len(rates), 1e-7), np.full(len(rates), 50.0)
    ratio = math.exp(log_ratio)
    for _ in range(40):
        hazard = np.sqrt(low * high)
        rate = -share * np.expm1(-hazard * ratio) - (1 - share) * np.expm1(-hazard)
        below = rate < rates
        low, high = np.where(below, hazard, low), np.where(below, high, hazard)
    return np.exp(-hazard) - np.exp(-hazard * ratio)


@dataclass(frozen=True, eq=False)
class Annotators:
    """The concepts that annotators of N images mention, and data from a large set of captions.

    Attributes:
        counts: (N, Q) how many of an image's annotators say each concept.
        numbers: (N,) how many annotators each image has.
        ratios: the ratio in the large set, by the index of the concept.
        rare: (Q,) whether the concept hardly ever occurs in the large set.
    """

    counts: Float64Array
    numbers: IntArray
    ratios: Mapping[int, HazardRatio] = field(default_factory=dict)
    rare: BoolArray | None = None

    @property
    def n_joined(self) -> int:
        """The largest K for which nine of ten images have at least K annotators."""
        return int(np.sort(self.numbers)[len(self.numbers) // 10])

    def share_of(self, speakers: int) -> Float64Array:
        """(N, Q): the chance that at least one of ``speakers`` annotators mentions the concept.

        Annotators are drawn without replacement. If an image has fewer annotators, all are taken.

        Example:
            >>> one = Annotators(np.array([[1.0], [2.0]]), np.array([2, 4]))
            >>> one.share_of(1).ravel().tolist(), one.share_of(2).ravel().round(3).tolist()
            ([0.5, 0.5], [1.0, 0.833])
        """
        total, silent = self.numbers[:, None].astype(np.float64), np.ones(self.counts.shape)
        for drawn in range(speakers):
            left = np.maximum(total - drawn, 1)
            still = np.clip(total - self.counts - drawn, 0, None) / left
            silent = np.where(drawn < total, silent * still, silent)
        return 1 - silent


@dataclass(frozen=True, eq=False)
class AtRate:
    """The annotators' difference at the captioner's rate, for each image and concept."""

    residuals: Float64Array  # (N, Q) residuals that are subtracted from the captioner's residuals
    fixed: Float64Array  # (N, Q) further shares that are subtracted
    variance: Float64Array  # (Q,) variance from the ratios of the large set
    references: tuple[Reference, ...]  # (Q,)


def annotators_at_rate(
    comparison: Comparison,
    annotators: Annotators | None,
    rates: Float64Array,
    expected: Float64Array,
) -> AtRate:
    """The differences that annotators would show if they used concepts at the captioner's rates.

    ``rates`` (Q,) are the captioner's rates. ``expected`` (N, Q) are the rates that are expected
    from the pictures.
    """
    n_images, n_concepts = expected.shape
    zeros = np.zeros((n_images, n_concepts))
    if annotators is None:
        return AtRate(zeros, zeros, np.zeros(n_concepts), (Reference.NONE,) * n_concepts)
    joined = [annotators.share_of(s) for s in range(1, annotators.n_joined + 1)]
    levels = np.stack([comparison.weights @ share for share in joined])  # (K, Q)
    plan = _plan(annotators, rates, levels)
    spoken = sum(
        (plan.weights[s] * share for s, share in enumerate(joined)), np.zeros(expected.shape)
    )
    fixed, variance = zeros.copy(), np.zeros(n_concepts)
    extended = [q for q in range(n_concepts) if plan.speakers[q] > 0]
    if extended:  # the differences that all annotators of an image together show
        shown = comparison.influence @ comparison.residuals(joined[-1][:, extended])
        for q, difference in zip(extended, shown.tolist(), strict=True):
            slope, offset = _extend_hazards(
                float(levels[-1, q]), difference, float(plan.speakers[q])
            )
            spoken[:, q] = slope * joined[-1][:, q]
            fixed[:, q] = comparison.weights * offset
    # Annotators' differences that rest on few mentions are shrunk
    effective = 1 / (comparison.weights**2).sum()  # images
    mentions = levels[0] * annotators.numbers.mean() * effective
    shrink = mentions / (mentions + _PRIOR)
    fixed *= shrink
    for q, ratio in annotators.ratios.items():
        if plan.references[q] is Reference.RATIO:
            # Scaled so that their weighted mean is the captioner's rate
            inside = np.clip(expected[:, q], 0.001, _RATES[1])
            of_images, change = ratio.difference(
                np.clip(inside * rates[q] / max(float(comparison.weights @ inside), 1e-9), *_RATES),
                comparison.expected_group,
            )
            fixed[:, q] = comparison.weights * of_images
            variance[q] = float(comparison.weights @ change) ** 2
    return AtRate(comparison.residuals(spoken * shrink), fixed, variance, plan.references)


@dataclass(frozen=True, eq=False)
class _Plan:
    """For each concept, how many annotators together reach the captioner's rate."""

    weights: Float64Array  # (K, Q) weights of one, two, ... annotators joined
    speakers: Float64Array  # (Q,) multiple of the annotators if hazards are extended, else 0
    references: tuple[Reference, ...]


def _plan(annotators: Annotators, rates: Float64Array, levels: Float64Array) -> _Plan:
    """For each concept, how many annotators have the captioner's (Q,) rate as their joint rate.

    ``levels`` (K, Q) are the joint rates of one, two, ... annotators.
    """
    n_concepts = levels.shape[1]
    weights, speakers = np.zeros(levels.shape), np.zeros(n_concepts)
    references: list[Reference] = []
    one = annotators.counts.sum(axis=0) / annotators.numbers.sum()  # (Q,) share of captions
    for q in range(n_concepts):
        rate, level = float(rates[q]), levels[:, q]
        if rate <= level[-1]:
            references.append(Reference.ANNOTATORS)
            _interpolate(weights[:, q], rate, level)
        elif q in annotators.ratios:
            references.append(Reference.RATIO)
        elif (annotators.rare is not None and bool(annotators.rare[q])) and one[q] <= HARDLY:
            references.append(Reference.HARDLY)
        else:
            times = _times_as_many(rate, float(level[-1]))
            known = times <= FURTHEST
            references.append(Reference.ANNOTATORS if known else Reference.UNKNOWN)
            speakers[q] = times if known else 0
    return _Plan(weights, speakers, tuple(references))


def _times_as_many(rate: float, level: float) -> float:
    """The factor by which annotators must increase so that the rate ``level`` becomes ``rate``."""
    if level <= 0:
        return math.inf
    return math.log1p(-min(rate, 0.98)) / math.log1p(-min(level, 0.98))


def _interpolate(weights: Float64Array, rate: float, levels: Float64Array) -> None:
    """Set (K,) ``weights`` under which the mean of ``levels`` is ``rate`` (at most the last)."""
    if rate <= 0:
        return
    if rate <= levels[0]:
        weights[0] = rate / levels[0]
        return
    above = int(np.searchsorted(levels, rate))
    step = levels[above] - levels[above - 1]
    weights[above] = (rate - levels[above - 1]) / step
    weights[above - 1] = 1 - weights[above]


def _extend_hazards(level: float, difference: float, times: float) -> tuple[float, float]:
    """The slope and offset that give the difference for ``times`` as many annotators."""
    level = min(level, 0.98)
    at = float(np.clip(difference, -1.9 * level, 1.9 * level))

    def joint_difference(shown: float) -> float:
        low, high = (np.clip(level + k * shown / 2, 0, 0.98) for k in (-1, 1))
        return float((1 - low) ** times - (1 - high) ** times)

    step = 0.05 * level
    slope = (joint_difference(at + step) - joint_difference(at - step)) / (2 * step)
    return slope, joint_difference(at) - slope * at


def hazard_ratios(comparison: Comparison, annotators: Annotators) -> tuple[HazardRatio, ...]:
    """(Q,): how much more often annotators mention each concept for the second group.

    All annotators of an image count as one. Weights give both groups the same mix of pictures: 1 -
    e for the second group and e for the first, where e is the expected group.
    """
    expected = np.clip(comparison.expected_group, *_GROUPS)
    second = comparison.groups * (1 - expected)
    first = (1 - comparison.groups) * expected
    joined = annotators.share_of(annotators.n_joined)
    hazards, variances = [], []
    for weights in (second / second.sum(), first / first.sum()):
        rate = np.clip(weights @ joined, 1e-6, 0.98)
        hazard = -np.log1p(-rate)
        variances.append((weights**2 @ (joined - rate) ** 2) / ((1 - rate) * hazard) ** 2)
        hazards.append(hazard)
    logs = np.clip(np.log(hazards[0] / hazards[1]), -5, 5)
    errors = np.minimum(np.sqrt(variances[0] + variances[1]), 2)
    return tuple(map(HazardRatio, logs.tolist(), errors.tolist()))
