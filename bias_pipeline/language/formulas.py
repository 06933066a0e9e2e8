"""Computes belief revision and bias ratios for the Gender Score and the gender-object distance.

The two metrics are by Sabir and Padro (2023).
"""

from __future__ import annotations

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.metrics.functional.counts import share


def revision(similarity: Float64Array, probability: Float64Array) -> Float64Array:
    """(...) the exponent alpha = [(1 - sim) / (1 + sim)]^(1 - P(c)), in [0, inf].

    With alpha 1 the likelihood does not change (no similarity, or an object in every picture). With
    alpha 0 the score is 1.

    Args:
        similarity: (...) cosine of caption and object, clamped to [-1, 1], since the exponent is
            not a real number outside this range.
        probability: (...) P(c) of the object, in [0, 1].

    Source: Sabir and Padro 2023, section 4, after Blok et al. 2003.

    Example:
        >>> revision(np.array([0.0, 1.0, 0.5]), np.array([0.3, 0.3, 0.0])).round(3).tolist()
        [1.0, 0.0, 0.333]
    """
    bounded = np.clip(similarity, -1.0, 1.0)
    informative = 1.0 - np.asarray(probability, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log1p(-bounded) - np.log1p(bounded)
        exponent: Float64Array = np.exp(np.where(informative == 0, 0.0, logs * informative))
    return np.where(np.isnan(similarity), np.nan, exponent)


def gender_score(
    likelihood: Float64Array, similarity: Float64Array, probability: Float64Array
) -> Float64Array:
    """(...) P(g)^alpha, a caption's likelihood revised by an object in the picture, in [0, 1].

    Args:
        likelihood: (...) P(g) of the caption, in [0, 1].
        similarity: see :func:`revision`.
        probability: see :func:`revision`.

    Source: Sabir and Padro 2023, eq. 3.

    Example:
        >>> score = gender_score(np.array(0.2), np.array(0.5), np.array(0.0))
        >>> float(score.round(4))
        0.5848
    """
    score: Float64Array = np.power(likelihood, revision(similarity, probability))
    return score


def bias_ratio(values: Float64Array, first: int = 0) -> Float64Array:
    """(...) one group's share in the sum over groups; for two groups s(m) / (s(m) + s(w)), eq. 1.

    The share is NaN unless every value is above 0, since otherwise the share could leave [0, 1].

    Args:
        values: (..., K) a value for each group.
        first: the group whose share is computed.

    Source: Sabir and Padro 2023, eq. 1.

    Example:
        >>> bias_ratio(np.array([[0.3, 0.1], [0.3, -0.1]])).round(3).tolist()
        [0.75, nan]
    """
    positive = (values > 0).all(axis=-1)
    total = np.where(positive, values.sum(axis=-1), np.nan)
    ratio: Float64Array = values[..., first] / total
    return ratio


def ratio_to_neutral(group: Float64Array, neutral: Float64Array) -> Float64Array:
    """(...) s(group) / s(person), eq. 2, or NaN unless both scores are above 0.

    Source: Sabir and Padro 2023, eq. 2.

    Example:
        >>> ratio_to_neutral(np.array([0.06, 0.1]), np.array([0.08, 0.0])).round(3).tolist()
        [0.75, nan]
    """
    valid = (group > 0) & (neutral > 0)
    return np.divide(group, neutral, out=np.full(np.shape(group), np.nan), where=valid)


def likeliest_group(scores: Float64Array) -> tuple[IntArray, BoolArray]:
    """For each caption, the group whose version scores highest, and whether there are ties.

    Ties go to the first group, as published. The group is -1 if a score is NaN.

    Args:
        scores: (N, K) scores of the same caption written about each group.

    Returns:
        (N,) groups and (N,) whether several groups have the highest score.

    Source: Sabir and Padro 2023, section 5, Gender Score Estimation.

    Example:
        >>> groups, ties = likeliest_group(np.array([[0.2, 0.3], [0.5, 0.5]]))
        >>> groups.tolist(), ties.tolist()
        ([1, 0], [False, True])
    """
    known = np.asarray(np.isfinite(scores).all(axis=1))
    valid = np.where(known[:, None], scores, 0.0)
    best = np.where(known, valid.argmax(axis=1), -1)
    several = (valid == valid.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return best.astype(np.int64), known & several


def cosines(objects: Float64Array, groups: Float64Array) -> Float64Array:
    """(T, K) cosines, or NaN where either vector is missing or 0.

    Args:
        objects: (T, D) vectors; NaN or 0 for an object without a vector.
        groups: (K, D) vectors; NaN or 0 for a group without a vector.

    Example:
        >>> cosines(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.6, nan]]
    """
    units = []
    for vectors in (objects, groups):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units.append(
            np.divide(vectors, lengths, out=np.full(vectors.shape, np.nan), where=lengths > 0)
        )
    cosine: Float64Array = units[0] @ units[1].T
    return cosine


def mean_cosines(counts: Float64Array, near: Float64Array) -> Float64Array:
    """(..., K) mean cosine over all mentions; objects without a cosine are left out.

    Args:
        counts: (..., T) how often each object is counted.
        near: (T, K) cosines of objects and groups, NaN where there is none.

    Example:
        >>> near = np.array([[0.2, 0.1], [0.4, 0.3], [np.nan, 0.9]])
        >>> mean_cosines(np.array([3.0, 1.0, 5.0]), near).round(3).tolist()
        [0.25, 0.15]
    """
    known = np.isfinite(near).all(axis=1)
    counted = counts[..., known]
    return share(counted @ near[known], counted.sum(axis=-1, keepdims=True))
