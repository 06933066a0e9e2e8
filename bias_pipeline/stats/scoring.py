"""Scores the predictions of an attacker from stored probabilities.

All published scores can be computed from the same predictions; only the functions here differ.
Every function takes ``probs`` and ``truth`` in one of two shapes, and returns a number for each
guess:

* K exclusive groups: ``probs`` (M, K) with rows that sum to 1, ``truth`` (M,) classes; returns (M,)
* T independent tasks: ``probs`` (M, T) in [0, 1], ``truth`` (M, T) of 0 and 1; returns (M, T)

Ties go to the last of the tied groups, as in the LIC code (0.5 and above means Female).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.declared import Configurable, Positive

Average = Literal["captions", "groups"]


def confidence_of(probs: Float64Array, truth: IntArray) -> Float64Array:
    """The probability of the true class, in [0, 1] (ImageCaptioner2, eq. 4).

    Example:
        >>> confidence_of(np.array([[0.3, 0.7]]), np.array([0])).tolist()
        [0.3]
    """
    if truth.ndim == 2:
        return np.where(truth == 1, probs, 1 - probs)
    return np.take_along_axis(probs, truth[:, None], axis=1)[:, 0]


def correct(probs: Float64Array, truth: IntArray) -> Float64Array:
    """1 where the most probable class is the true class, else 0 (leakage, Wang et al. 2019).

    Example:
        >>> correct(np.array([[0.5, 0.5]]), np.array([1])).tolist()
        [1.0]
    """
    if truth.ndim == 2:
        return ((probs >= 0.5) == (truth == 1)).astype(np.float64)
    last = probs.shape[1] - 1 - probs[:, ::-1].argmax(axis=1)
    return (last == truth).astype(np.float64)


def confident_correct(probs: Float64Array, truth: IntArray) -> Float64Array:
    """The probability of the true class where it is the most probable class, else 0 (LIC, eq. 2-3).

    Example:
        >>> confident_correct(np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([1, 0])).tolist()
        [0.8, 0.0]
    """
    return confidence_of(probs, truth) * correct(probs, truth)


def cross_entropy(probs: Float64Array, truth: IntArray, floor: float = 1e-12) -> Float64Array:
    """Minus the natural logarithm of the true class's probability, in [0, -ln floor].

    Example:
        >>> cross_entropy(np.array([[0.5, 0.5]]), np.array([1])).round(4).tolist()
        [0.6931]
    """
    return -np.log(np.maximum(confidence_of(probs, truth), floor))


class Scoring(Configurable, ABC):
    """A score for each guess, and a function that is applied to the mean score.

    An attacker's score is ``link(mean of per_guess)``. Since the two functions are separate, the
    bootstrap can change the weights of guesses without new attackers.

    ``average=captions`` is the mean over all guesses, as in papers, where test sets are balanced.
    ``average=groups`` is the mean of groups' means (ours), so every test set is scored as if it
    were balanced. DBAC and DPA score pairs and tasks, and use neither average.
    """

    unit: ClassVar[str] = "fraction"  # of an attacker's score

    def __init__(self, average: Average = "captions") -> None:
        self.average = average

    @abstractmethod
    def per_guess(self, probs: Float64Array, truth: IntArray) -> Float64Array:
        """A number for each guess, in the shapes that the module describes."""

    def link(self, mean: Float64Array) -> Float64Array:
        """The score of an attacker, computed from its mean element by element."""
        return mean

    @abstractmethod
    def chance(self, n_classes: int) -> float:
        """The expected score of a uniform prediction over K balanced groups."""


class Accuracy(Scoring):
    """``scoring=accuracy``: the share of right guesses, in [0, 1]."""

    def per_guess(self, probs: Float64Array, truth: IntArray) -> Float64Array:
        return correct(probs, truth)

    def chance(self, n_classes: int) -> float:
        return 1 / n_classes


class Lic(Scoring):
    """``scoring=lic``: the mean confidence of guesses in [0, 1]; wrong guesses count as 0."""

    def per_guess(self, probs: Float64Array, truth: IntArray) -> Float64Array:
        return confident_correct(probs, truth)

    def chance(self, n_classes: int) -> float:
        return 1 / n_classes**2


class Confidence(Scoring):
    """``scoring=confidence``: the mean probability of the true class, in [0, 1]."""

    def per_guess(self, probs: Float64Array, truth: IntArray) -> Float64Array:
        return confidence_of(probs, truth)

    def chance(self, n_classes: int) -> float:
        return 1 / n_classes


class InverseCrossEntropy(Scoring):
    """``scoring=inverse_ce``: 1 / mean cross-entropy in nats (DBAC, sections 5.2 to 5.4).

    For a very confident attacker the score would become huge, so a mean cross-entropy below
    ``bound`` counts as ``bound`` (ours).
    """

    unit: ClassVar[str] = "1/nat"

    def __init__(self, bound: Positive = 0.01, average: Average = "captions") -> None:
        super().__init__(average)
        self.bound = bound

    def per_guess(self, probs: Float64Array, truth: IntArray) -> Float64Array:
        return cross_entropy(probs, truth)

    def link(self, mean: Float64Array) -> Float64Array:
        return 1 / np.maximum(mean, self.bound)

    def chance(self, n_classes: int) -> float:
        return float(1 / np.log(n_classes))
