"""Computes scores of one attacker, and compares the model's score with the human score.

In all functions, ``probs`` (M, K) has rows that sum to 1, and ``truth`` (M,) has the classes, which
are whole numbers from 0 to K - 1. Lists, tables and tensors are accepted as arrays. Anything else
raises ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.stats import scoring

_ROUNDING = 1e-3  # how far the sum of a row of float16 probabilities may be from 1


def _guesses(probs: ArrayLike, truth: ArrayLike) -> tuple[Float64Array, IntArray]:
    """Probabilities and classes as arrays, after checks."""
    rows, classes = np.asarray(probs, dtype=np.float64), np.asarray(truth)
    if rows.ndim != 2 or not rows.size or classes.shape != rows.shape[:1]:
        raise ValueError(
            f"probs must be (M, K) and truth (M,), of one guess or more; they are {rows.shape} and "
            f"{classes.shape}"
        )
    if not (rows >= 0).all() or np.abs(rows.sum(axis=1) - 1).max() > _ROUNDING:
        raise ValueError("probs must be probabilities, at least 0 and with a sum of 1 in each row")
    if classes.dtype.kind not in "iu" or not ((classes >= 0) & (classes < rows.shape[1])).all():
        raise ValueError(
            f"truth must hold whole numbers from 0 to {rows.shape[1] - 1}, the classes"
        )
    return rows, classes.astype(np.int64)


def lic(probs: ArrayLike, truth: ArrayLike) -> float:
    """LIC_M or LIC_D, in [0, 1]: the mean confidence of right guesses.

    Uniform guesses give 1 / K^2.

    Sources: Hirota et al. 2022, eq. 2-3; RELIC eq. 2.

    Example:
        >>> lic(np.array([[0.2, 0.8], [0.3, 0.7]]), np.array([1, 0]))
        0.4
    """
    return float(scoring.confident_correct(*_guesses(probs, truth)).mean())


def leakage(probs: ArrayLike, truth: ArrayLike) -> float:
    """Accuracy of the attacker, in [0, 1]. Uniform predictions have 1 / K.

    Source: Wang et al. 2019.

    Example:
        >>> leakage(np.array([[0.2, 0.8], [0.3, 0.7]]), np.array([1, 0]))
        0.5
    """
    return float(scoring.correct(*_guesses(probs, truth)).mean())


def imagecaptioner2(probs: ArrayLike, truth: ArrayLike) -> float:
    """Mean probability of the true class, in [0, 1].

    Source: ImageCaptioner2, eq. 4.

    Example:
        >>> imagecaptioner2(np.array([[0.2, 0.8], [0.3, 0.7]]), np.array([1, 0])).__round__(3)
        0.55
    """
    return float(scoring.confidence_of(*_guesses(probs, truth)).mean())


def inverse_cross_entropy(probs: ArrayLike, truth: ArrayLike, bound: float = 0.01) -> float:
    """1 divided by the mean cross-entropy in nats; at most 1 / bound.

    Source: DBAC, sections 5.2 to 5.4; the bound is ours.

    Example:
        >>> round(inverse_cross_entropy(np.array([[0.5, 0.5]]), np.array([1])), 4)
        1.4427
    """
    return 1 / max(float(scoring.cross_entropy(*_guesses(probs, truth)).mean()), bound)


def expected_calibration_error(probs: ArrayLike, truth: ArrayLike, bins: int = 10) -> float:
    """The mean gap between confidence and accuracy over bins of equal width, in [0, 1].

    Args:
        probs: see the module.
        truth: see the module.
        bins: number of bins over [1/K, 1].

    Source: Naeini et al. 2015; Guo et al. 2017, eq. 3.

    Example:
        >>> expected_calibration_error(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([1, 0]))
        0.5
    """
    rows, classes = _guesses(probs, truth)
    confidence = rows.max(axis=1)
    low = 1 / rows.shape[1]
    cell = np.clip(((confidence - low) / (1 - low) * bins).astype(np.int64), 0, bins - 1)
    gap = scoring.correct(rows, classes) - confidence
    return float(np.abs(np.bincount(cell, gap, bins)).sum() / len(classes))


def accuracy_and_confidence_parts(
    model: tuple[Float64Array, Float64Array], human: tuple[Float64Array, Float64Array]
) -> tuple[Float64Array, Float64Array]:
    """Split LIC_M - LIC_D into a part due to accuracy and a part due to confidence.

    LIC is accuracy times the mean confidence of right guesses. So the difference is exactly the sum
    of two parts (ours). Each part is the change of one factor times the mean of the other factor.

    Args:
        model: accuracy and LIC_M, arrays of one shape.
        human: accuracy and LIC_D, of the same shape.

    Returns:
        The part of accuracy and the part of confidence, of that shape.

    Example:
        >>> right, sure = accuracy_and_confidence_parts(
        ...     (np.array(0.8), np.array(0.64)), (np.array(0.5), np.array(0.3)))
        >>> right.round(3).item(), sure.round(3).item(), (right + sure).round(3).item()
        (0.21, 0.13, 0.34)
    """
    (right_m, lic_m), (right_h, lic_h) = model, human
    with np.errstate(divide="ignore", invalid="ignore"):
        sure_m, sure_h = lic_m / right_m, lic_h / right_h
    of_accuracy = (right_m - right_h) * (sure_m + sure_h) / 2
    of_confidence = (sure_m - sure_h) * (right_m + right_h) / 2
    return of_accuracy, of_confidence


def difference(model: Float64Array, human: Float64Array) -> Float64Array:
    """The model's score minus the human score, which is 0 without bias (LIC, Leakage).

    Example:
        >>> float(difference(np.float64(0.5), np.float64(0.4)).round(2))
        0.1
    """
    return model - human


def ratio(model: Float64Array, human: Float64Array) -> Float64Array:
    """Model divided by human, which is 1 without bias, or NaN if the human score is 0.

    Example:
        >>> float(ratio(np.float64(0.5), np.float64(0.4)))
        1.25
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(human != 0, np.divide(model, human), np.nan)


def normalised_difference(model: Float64Array, human: Float64Array) -> Float64Array:
    """(model - human) / (model + human), which is 0 without bias (DBAC, DPA).

    For scores above 0 the value is in [-1, 1]. The value is NaN where both scores are 0.

    Example:
        >>> float(normalised_difference(np.float64(0.6), np.float64(0.4)).round(3))
        0.2
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(model + human != 0, np.divide(model - human, model + human), np.nan)


@dataclass(frozen=True)
class Relation:
    """A way to compare the model's score with the human score.

    Attributes:
        of: the function of (model, human).
        neutral: its value when the two are equal.
        unit: of its values.
    """

    of: Callable[[Float64Array, Float64Array], Float64Array]
    neutral: float
    unit: str


RelationName = Literal["difference", "ratio", "normalised"]
RELATIONS: Mapping[RelationName, Relation] = {
    "difference": Relation(difference, 0.0, "fraction"),
    "ratio": Relation(ratio, 1.0, "ratio"),
    "normalised": Relation(normalised_difference, 0.0, "fraction"),
}
