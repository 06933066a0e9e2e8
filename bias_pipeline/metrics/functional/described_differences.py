"""Computes differences beyond annotators, the errors of the differences, the score and the verdict.

The differences of concepts are summed to differences of classes. The score is half the sum of the
absolute differences of all concepts. Signs are taken from the other folds, so that noise adds
almost nothing on average. What noise still adds is measured on permuted groups and subtracted. A
concept counts only if the captioner's own difference has the same sign, because describing groups
more alike than annotators do is no bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.metrics.functional.comparable import Comparison
from bias_pipeline.metrics.functional.descriptions import (
    Annotators,
    AtRate,
    Reference,
    annotators_at_rate,
)

LEAST = 0.01  # the smallest difference that counts: one of a hundred captions
FEWEST_MENTIONS = 10  # fewest mentions of a concept that is tested
CONCEPT_ERRORS, SCORE_ERRORS = 1.15, 1.2  # factors of errors, from simulations
ALPHA = 0.05
_Z = 1.96
_SIGN = 0.7  # the sign of the other folds' sum counts if the sum is more errors than this from 0
_POWER = 0.84  # so many errors beyond the critical value, 80 % of differences are noticed


@dataclass(frozen=True, eq=False)
class Amounts:
    """The differences of M concepts or classes, with standard errors."""

    values: Float64Array  # (M,)
    errors: Float64Array  # (M,)

    @property
    def z(self) -> Float64Array:
        """(M,): the values divided by their standard errors."""
        return self.values / np.maximum(self.errors, 1e-9)


@dataclass(frozen=True, eq=False)
class Differences:
    """How differently captions describe two groups.

    Attributes:
        rates: (Q,) how often the captioner uses each concept on comparable pictures.
        mentions: (Q,) how many captions have each concept.
        references: (Q,) the data from which the annotators' difference was computed.
        shown: the captioner's differences in Q concepts, as the second group minus the first.
        excess: the differences beyond annotators.
        class_shown: the captioner's own differences in L classes.
        class_excess: the differences of classes beyond annotators.
        membership: (Q, L) 1 where a concept belongs to a class.
        score: half the sum of the absolute differences.
        score_error: its standard error.
        score_influence: (N,) how much each image moves the score if the signs of differences stay
            fixed.
        null: what noise would add to the score, already subtracted.
    """

    rates: Float64Array
    mentions: Float64Array
    references: tuple[Reference, ...]
    shown: Amounts
    excess: Amounts
    class_shown: Amounts
    class_excess: Amounts
    membership: Float64Array
    score: float
    score_error: float
    score_influence: Float64Array
    null: float

    @property
    def score_interval(self) -> tuple[float, float]:
        """The 95 % interval, whose upper end is never below 0 as the true score is not negative."""
        half = _Z * SCORE_ERRORS * self.score_error
        return self.score - half, max(self.score, 0.0) + half

    @property
    def listed_concepts(self) -> IntArray:
        """The concepts that are frequent enough in captions to be listed."""
        return np.flatnonzero(self.mentions >= FEWEST_MENTIONS)

    @property
    def tested_concepts(self) -> IntArray:
        """The concepts that can be the reason for the answer Yes."""
        counted = np.array([_counts(reference) for reference in self.references], bool)
        return np.flatnonzero((self.mentions >= FEWEST_MENTIONS) & counted)

    @property
    def tested_classes(self) -> IntArray:
        """The classes with two tested concepts, which can be the reason for the answer Yes."""
        return np.flatnonzero((self.membership[self.tested_concepts] > 0).sum(axis=0) > 1)

    def p_values(self) -> tuple[Float64Array, Float64Array]:
        """The p value of each tested concept and class, corrected for the number of tests.

        The captioner's difference and the difference beyond annotators are each divided by their
        standard error. The p value is computed from the smaller quotient. Both differences must
        have the same sign and be at least one percentage point.
        """
        concepts, classes = self.agreeing()
        number = len(concepts) + len(classes)
        corrected = [
            np.minimum(1, 2 * special.ndtr(-z / CONCEPT_ERRORS) * number)
            for z in (concepts, classes)
        ]
        return corrected[0], corrected[1]

    def agreeing(self) -> tuple[Float64Array, Float64Array]:
        """For each tested concept and class, the smaller difference in standard errors."""
        return (
            _agreeing(self.shown, self.excess, self.tested_concepts),
            _agreeing(self.class_shown, self.class_excess, self.tested_classes),
        )

    def spread_p(self) -> float:
        """The two-sided p value of the score, which tests for a bias spread over many concepts.

        The value is 1 if the score is below one percentage point, or if no concept or class can be
        named.
        """
        if self.score < LEAST or not (
            len(self.named_beside_score()) or len(self.classes_beside_score())
        ):
            return 1.0
        return float(2 * special.ndtr(-self.score / (SCORE_ERRORS * self.score_error)))

    def named_beside_score(self) -> IntArray:
        """The concepts that an answer names if the score is above 0 (Benjamini and Hochberg)."""
        tested = self.tested_concepts
        beyond = _benjamini_hochberg(2 * special.ndtr(-abs(self.excess.z[tested])))
        return tested[beyond & (_agreeing(self.shown, self.excess, tested, least=0.0) > _Z)]

    def classes_beside_score(self) -> IntArray:
        """The classes that an answer names if the score is above 0 (Bonferroni)."""
        tested = self.tested_classes
        p = 2 * special.ndtr(-abs(self.class_excess.z[tested])) * len(tested)
        agree = _agreeing(self.class_shown, self.class_excess, tested, least=0.0) > _Z
        return tested[(p < ALPHA) & agree]

    def closer_together(self) -> IntArray:
        """The concepts that differ less between groups in model captions than in human captions."""
        tested = self.tested_concepts
        beyond = abs(self.excess.z[tested]) > 3
        small = abs(self.shown.z[tested]) < _Z
        other = self.shown.values[tested] * self.excess.values[tested] < 0
        return tested[beyond & (small | other)]

    def smallest(self) -> Float64Array:
        """(M,): the smallest difference of each tested concept that 4 of 5 samples would show."""
        tested, number = self.tested_concepts, len(self.tested_concepts) + len(self.tested_classes)
        errors = np.maximum(self.shown.errors, self.excess.errors)[tested]
        critical = -special.ndtri(ALPHA / 2 / max(number, 1)) * CONCEPT_ERRORS
        return (critical + _POWER) * errors


def _counts(reference: Reference) -> bool:
    """Whether a concept, given its annotators' difference, counts in classes, score and verdict."""
    return reference not in (Reference.UNKNOWN, Reference.ALONE)


def _agreeing(
    shown: Amounts, excess: Amounts, which: IntArray, least: float = LEAST
) -> Float64Array:
    """(M,): the smaller of two differences, in standard errors.

    The result is 0 if the signs differ or a difference is too small.
    """
    one, two = shown.values[which], excess.values[which]
    alike = (one * two > 0) & (np.minimum(abs(one), abs(two)) >= least)
    return np.where(alike, np.minimum(abs(shown.z[which]), abs(excess.z[which])), 0.0)


def _benjamini_hochberg(p_values: Float64Array) -> BoolArray:
    """(M,) flags: true for hypotheses that the rule of Benjamini and Hochberg rejects.

    Example:
        >>> _benjamini_hochberg(np.array([0.04, 0.001, 0.9])).tolist()
        [False, True, False]
    """
    order = np.argsort(p_values)
    below = p_values[order] <= ALPHA * np.arange(1, len(order) + 1) / max(len(order), 1)
    rejected = np.zeros(len(order), bool)
    rejected[order[: np.max(np.flatnonzero(below), initial=-1) + 1]] = True
    return rejected


def described_differences(
    comparison: Comparison,
    says: Float64Array,
    annotators: Annotators | None,
    classes: IntArray,
    alone: Sequence[int] = (),
) -> Differences:
    """How differently captions describe two groups.

    ``says`` (N, Q) is the share of an image's captions that mention each concept. ``classes`` (Q,)
    are the classes of the concepts.
    """
    residuals = comparison.residuals(says)
    rates = comparison.weights @ says
    at_rate = annotators_at_rate(comparison, annotators, rates, says - residuals)
    references = list(at_rate.references)
    for concept in alone:
        references[concept] = Reference.ALONE
    counted = np.array([_counts(reference) for reference in references], bool)
    membership = (classes[:, None] == np.arange(classes.max(initial=0) + 1)) * counted[:, None]
    parts = _Parts(comparison, residuals, at_rate, membership.astype(np.float64))
    score = _Score(parts, counted)
    mentions = says.sum(axis=0)
    return Differences(
        rates=rates,
        mentions=mentions,
        references=tuple(references),
        shown=parts.shown,
        excess=parts.excess,
        class_shown=parts.class_shown,
        class_excess=parts.class_excess,
        membership=parts.membership,
        score=score.value,
        score_error=score.error,
        score_influence=score.influence,
        null=score.null,
    )


class _Parts:
    """Sums over the images of one comparison, by fold and for permuted groups."""

    def __init__(
        self,
        comparison: Comparison,
        residuals: Float64Array,
        at_rate: AtRate,
        membership: Float64Array,
    ) -> None:
        self.comparison, self.membership = comparison, membership
        self.variance = at_rate.variance
        beyond = residuals - at_rate.residuals
        influence = comparison.influence[:, None]
        self.of_shown = influence * residuals  # (N, Q) each image's share of the difference
        self.of_excess = influence * beyond - at_rate.fixed
        self.folds_shown = comparison.by_fold(self.of_shown)[None]  # (1, F, Q)
        self.folds_excess = comparison.by_fold(self.of_excess)[None]
        self.null_shown = comparison.permuted_by_fold(residuals)  # (B, F, Q)
        self.null_excess = comparison.permuted_by_fold(beyond)
        null = self.null_excess.sum(axis=1)  # (B, Q)
        self.null_mean = null.mean(axis=0)
        self.shown = self._plain_amounts(self.of_shown)
        self.excess = self._amounts_beyond(self.of_excess, null, self.variance)
        self.class_shown = self._plain_amounts(self.of_shown @ membership)
        self.class_excess = self._amounts_beyond(
            self.of_excess @ membership, null @ membership, self.variance @ membership
        )

    def _plain_amounts(self, shares: Float64Array) -> Amounts:
        return Amounts(shares.sum(axis=0), self.comparison.standard_errors(shares))

    def _amounts_beyond(
        self, shares: Float64Array, null: Float64Array, variance: Float64Array
    ) -> Amounts:
        """Sums minus the mean sums of permuted groups; errors include the variance of ratios."""
        error = np.maximum(self.comparison.standard_errors(shares), null.std(axis=0))
        return Amounts(shares.sum(axis=0) - null.mean(axis=0), np.sqrt(error**2 + variance))


class _Score:
    """Half the sum of differences, each times its sign on the other folds."""

    def __init__(self, parts: _Parts, counted: BoolArray) -> None:
        self.parts, self.counted = parts, counted
        value = float(self._sums(parts.folds_excess, parts.folds_shown)[0])
        null = self._sums(parts.null_excess, parts.null_shown)  # (B,)
        self.null = float(null.mean())
        self.value = value - self.null
        of_ratios = 0.25 * float(parts.variance @ counted)
        self.influence = self._influence()
        error = max(float(np.linalg.norm(self.influence)), float(null.std()))
        self.error = float(np.sqrt(error**2 + of_ratios))

    def _others(self, excess: Float64Array, shown: Float64Array) -> tuple[Float64Array, BoolArray]:
        """(B, F, Q): signs on the other folds, and whether ``shown`` is the smaller difference."""
        parts, folds = self.parts, excess.shape[1]
        left = (folds - 1) / folds
        beyond = excess.sum(axis=1, keepdims=True) - excess - left * parts.null_mean
        difference = shown.sum(axis=1, keepdims=True) - shown
        by_concept = beyond / np.maximum(parts.excess.errors * np.sqrt(left), 1e-12)
        class_errors = np.maximum(parts.class_excess.errors, 1e-12)
        by_class = (beyond @ parts.membership / class_errors) @ parts.membership.T
        sign = by_concept + by_class
        errors = np.maximum(parts.shown.errors, 1e-9) * np.sqrt(left)
        gate = (sign * difference > 0) & (abs(difference) / errors > _SIGN)
        counts = gate & (abs(sign) > _SIGN) & self.counted
        return np.sign(sign) * counts, abs(difference) < abs(beyond)

    def _sums(self, excess: Float64Array, shown: Float64Array) -> Float64Array:
        """(B,): the scores, computed from (B, F, Q) sums by fold."""
        signs, smaller = self._others(excess, shown)
        beyond = excess - self.parts.null_mean / excess.shape[1]
        return 0.5 * (np.where(smaller, shown, beyond) * signs).sum(axis=(1, 2))

    def _influence(self) -> Float64Array:
        """(N,): how much each image changes the score if signs are fixed."""
        parts, comparison = self.parts, self.parts.comparison
        signs, smaller = self._others(parts.folds_excess, parts.folds_shown)
        share = np.zeros(len(comparison.groups))
        for k, fold in enumerate(np.unique(comparison.folds)):
            rows = comparison.folds == fold
            amounts = np.where(smaller[0, k], parts.of_shown[rows], parts.of_excess[rows])
            share[rows] = 0.5 * amounts @ signs[0, k]
        return comparison.centred_shares(share[:, None])[:, 0]
