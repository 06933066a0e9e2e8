"""Measures how far raters agree beyond chance, and how often labels are wrong.

Agreement is Krippendorff's alpha, with intervals over images. Errors are estimated although the
true group of an item is unknown. Each rater has a confusion matrix, and raters err independently of
each other, given the truth (Dawid and Skene 1979). With three raters or more, expectation
maximisation finds the matrices that make the answers most likely. With two raters, only a range of
the error can be found (:func:`error_range`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.stats.bootstrap import Interval

_RESAMPLES = 1000
_LEAST_VALID = 0.9  # of resamples; with fewer there is no interval


def krippendorff(counts: IntArray, *, ordinal: bool = False) -> float:
    """Krippendorff's alpha of (N, K) answers: 1 minus observed over expected disagreement.

    Alpha is 1 if raters always agree, 0 if agreement is at the level of chance, and negative if
    agreement is lower. Images with fewer than two answers do not count. Source: Krippendorff,
    Content Analysis (2004), chapter 11, and Computing Krippendorff's Alpha-Reliability (2011),
    whose example is a test.

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
    """(K, K): the squared number of answers between the middles of two ranks."""
    middle = np.cumsum(totals) - totals / 2
    squares: Float64Array = (middle[:, None] - middle) ** 2
    return squares


def fleiss(counts: IntArray) -> float:
    """Fleiss' kappa of (N, K) answers: 1 if all raters agree, 0 if they agree as by chance.

    The formula is kappa = (P - Q) / (1 - Q). P is the mean share of agreeing pairs of answers,
    where the weight of an image is its number of answers minus one, and Q is the sum of squared
    frequencies of answers (Fleiss 1971; Fleiss, Levin and Paik 2003, chapter 18, for unequal
    numbers of raters). For two raters, kappa is Scott's pi.

    Example:
        >>> fleiss(np.array([[2, 0], [0, 2], [1, 1], [1, 1]]))
        0.0
    """
    paired = counts[counts.sum(axis=1) > 1]
    raters = paired.sum(axis=1)
    if not len(paired):
        return math.nan
    observed = ((paired * (paired - 1)).sum(axis=1) / raters).sum() / (raters - 1).sum()
    chance = float(((paired.sum(axis=0) / raters.sum()) ** 2).sum())
    return float((observed - chance) / (1 - chance)) if chance < 1 else math.nan


def with_interval(counts: IntArray, coefficient: Callable[[IntArray], float]) -> Interval:
    """A coefficient of (N, K) counts, with its 95 % percentile interval over resampled images."""
    value, generator = coefficient(counts), np.random.default_rng(0)
    values = [
        coefficient(counts[generator.integers(0, len(counts), len(counts))])
        for _ in range(_RESAMPLES if len(counts) > 1 else 0)
    ]
    valid = [drawn for drawn in values if not math.isnan(drawn)]
    if len(valid) < max(1, _LEAST_VALID * _RESAMPLES):
        return Interval(value)
    low, high = np.quantile(valid, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def answer_counts(ballots: Sequence[Sequence[str]], answers: Sequence[str]) -> IntArray:
    """(N, K): how many raters gave each of ``answers`` to each image, ignoring other answers.

    Example:
        >>> answer_counts([["yes", "no"], ["yes"]], ["no", "yes"]).tolist()
        [[1, 1], [0, 1]]
    """
    columns = {answer: k for k, answer in enumerate(answers)}
    counts = np.zeros((len(ballots), len(answers)), np.int64)
    for of_image, votes in zip(counts, ballots, strict=True):
        for vote in votes:
            if vote in columns:
                of_image[columns[vote]] += 1
    return counts


LEAST_RATERS = 3  # raters of an item; with fewer the truth is not identified
_ROUNDS, _CLOSE = 200, 1e-7
_SMOOTH = 0.01  # answers that are added to each cell, so that no cell stays at 0


class Consensus(NamedTuple):
    """The likely truth and the errors of raters, estimated from the answers."""

    posterior: Float64Array  # (N, K) probability of each group for each item; rows sum to 1
    prior: Float64Array  # (K,) share of each group
    # (R, K, K) for each rater, the probability of an answer (last) given the truth
    confusions: Float64Array


def consensus(answers: IntArray, n_groups: int) -> Consensus:
    """The hidden truth and the errors of each rater (Dawid and Skene 1979, eq. 2.3 to 2.5).

    ``answers`` is (N, R), where numbers below 0 mean no answer. The search starts from the shares
    of answers, so raters must be right more often than not.

    Example:
        >>> answers = np.array([[0, 0, 0]] * 6 + [[1, 1, 1]] * 5 + [[1, 1, 0]])
        >>> consensus(answers, 2).posterior[-1].round(2).tolist()
        [0.0, 1.0]
    """
    # Items with the same answers have the same posterior, and many items have the same answers.
    patterns, item_of, times = np.unique(answers, axis=0, return_inverse=True, return_counts=True)
    gave = patterns[:, :, None] == np.arange(n_groups)  # (P, R, K)
    votes = gave.sum(axis=1)
    posterior = (votes + 1e-9) / (votes + 1e-9).sum(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        counted = posterior * times[:, None]
        prior = counted.sum(axis=0) / len(answers)
        counts = np.einsum("pt,prk->rtk", counted, gave) + _SMOOTH
        confusions = counts / counts.sum(axis=2, keepdims=True)
        likelihood = np.einsum("prk,rtk->pt", gave, np.log(confusions))
        joint = likelihood + np.log(np.maximum(prior, 1e-300))
        weight = np.exp(joint - joint.max(axis=1, keepdims=True))
        before, posterior = posterior, weight / weight.sum(axis=1, keepdims=True)
        if np.abs(posterior - before).max() < _CLOSE:
            break
    return Consensus(posterior[item_of], prior, confusions)


def label_confusion(answers: IntArray, n_groups: int) -> Float64Array:
    """(K, K): the probability of each majority label (last axis) given the truth (first axis).

    Items whose answers have no majority have no label and do not count. For the other items, the
    truth is the posterior of :func:`consensus`. If no item has a group as its label, the row of
    this group is NaN, since nothing shows how often the group is confused.

    Example:
        >>> answers = np.array([[0, 0, 0]] * 6 + [[1, 1, 1]] * 6)
        >>> label_confusion(answers, 2).round(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    labels, labelled = majority_labels(answers, n_groups)
    posterior = consensus(answers, n_groups).posterior[labelled]
    given = labels[labelled, None] == np.arange(n_groups)
    shares = posterior.T @ given / np.maximum(posterior.sum(axis=0)[:, None], 1e-300)
    return np.where(given.any(axis=0)[:, None], shares, np.nan)


def majority_labels(answers: IntArray, n_groups: int) -> tuple[IntArray, BoolArray]:
    """For each item, the group that most answers name, (N,), and whether it has no tie, (N,).

    Example:
        >>> labels, labelled = majority_labels(np.array([[0, 0, 1], [0, 1, -1]]), 2)
        >>> labels[labelled].tolist()
        [0]
    """
    votes = (answers[:, :, None] == np.arange(n_groups)).sum(axis=1)
    most = votes.max(axis=1, keepdims=True)
    return votes.argmax(axis=1), (votes == most).sum(axis=1) == 1


def error_range(disagreement: float, n_groups: int) -> tuple[float, float]:
    """The range of the share of wrong answers, from the share of items on which two raters differ.

    Both ends assume that the two raters err independently. The share is least if one rater makes
    all errors. The share is largest if both raters err equally often, are right more often than
    not, and spread wrong answers evenly. Raters who make the same errors err more often than the
    range says, and answers cannot show this.

    Example:
        >>> [round(end, 3) for end in error_range(0.18, 2)]
        [0.09, 0.1]
    """
    others = (n_groups - 1) / n_groups
    return disagreement / 2, others * (1 - math.sqrt(max(0.0, 1 - disagreement / others)))
