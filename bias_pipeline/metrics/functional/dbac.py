"""Computes DBAC, directional bias amplification in captions, from qualities and priors.

The paper does not say how to aggregate pairs of groups and tasks, so every choice is a named
parameter. (The authors' code weights exact sets of objects; see
:mod:`bias_pipeline.metrics.attack.dbac_object_sets`.) Arrays are (..., G, O). The *given* variable
(the attribute for A→T, the task for T→A) has G values, and the *other* variable has O values.
Leading axes are free (seeds, bootstrap samples).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array

EPSILON = 1e-8
Aggregate = Literal["weighted", "per_pair", "per_caption", "marginal"]
Prior = Literal["counts", "shared", "none"]
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)
PRIORS: tuple[Prior, ...] = get_args(Prior)
LABELS = "labels"  # prior from images' labels, the same for both sides
OBJECT_SET, IMAGES = "object_set", "images"  # prior and aggregate of the authors' code


@dataclass(frozen=True, eq=False)
class Side:
    """The qualities, the prior and the counts of one side's captions.

    Attributes:
        quality: (..., G, O): the attackers' quality on captions of a pair, above 0; NaN without
            captions.
        overall: (...) the attackers' quality on all captions.
        other: (..., O) P(other): share of captions that name each value of the other variable.
        mentions: (..., G, O) number of captions of each pair.
    """

    quality: Float64Array
    overall: Float64Array
    other: Float64Array
    mentions: Float64Array


def omega(quality: Float64Array, other: Float64Array, given: Float64Array) -> Float64Array:
    """The bias of one side, Q P(other) / P(given) (eq. 5 and 6).

    For an ideal attacker that sees only the other variable, Q = P(given | other), and so omega =
    P(other | given) by Bayes. If a value is never named, its omega is 0, since P(other) is 0.

    Args:
        quality: (..., G, O).
        other: (..., O).
        given: (..., G).

    Example:
        >>> omega(np.array([[0.8]]), np.array([0.2]), np.array([0.5])).round(2).tolist()
        [[0.32]]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = quality * other[..., None, :] / given[..., :, None]
    return np.where(other[..., None, :] == 0, 0.0, bias)


def dbac(model: Float64Array, human: Float64Array, epsilon: float = EPSILON) -> Float64Array:
    """(omega_M - omega_H) / (omega_M + omega_H + epsilon), in (-1, 1) (eq. 7 and 8).

    Where both omegas are 0, there is nothing to compare, and the value is NaN.

    Example:
        >>> dbac(np.array([0.32, 0.0]), np.array([0.35, 0.0])).round(4).tolist()
        [-0.0448, nan]
    """
    total = model + human
    with np.errstate(invalid="ignore"):
        return np.where(total > 0, (model - human) / (total + epsilon), np.nan)


def pair_scores(
    model: Side, human: Side, given: Float64Array, prior: str, epsilon: float = EPSILON
) -> Float64Array:
    """(..., G, O): the DBAC of every pair. For the arguments see :func:`dbac_score`."""
    one, two = _omegas(model, human, given, prior)
    return dbac(one, two, epsilon)


def dbac_score(
    model: Side,
    human: Side,
    given: Float64Array,
    supported: BoolArray,
    *,
    aggregate: str = "weighted",
    prior: str = "counts",
    epsilon: float = EPSILON,
) -> Float64Array:
    """DBAC in one direction.

    Args:
        model: the captioner's side.
        human: the annotators' side.
        given: (..., G) P(given), from image labels, the same for both sides.
        supported: (G, O) which pairs count.
        aggregate: ``weighted``: mean of the pairs' DBAC, weighted by human captions of the pair, so
            that noise of a rare pair matters little (ours); ``per_pair``: the plain mean of the
            pairs' DBAC, as published; ``per_caption``: DBAC of omegas averaged over each side's
            mentions; ``marginal``: DBAC of the overall quality times the mean of P(other) over the
            mean of P(given).
        prior: where P(other) comes from. ``counts``: for each side from its own captions, as
            published; a captioner that only names more things then scores above 0 (+1/3 if it names
            twice as many). ``shared``: for both sides from human captions, which avoids this
            effect.
            ``none``: P(other) is left out.
        epsilon: see :func:`dbac`.

    Returns:
        (...) in (-1, 1), NaN where no pair can be compared.
    """
    if aggregate == "marginal":
        one, two = (
            _marginal(side, shown, given, prior)
            for side, shown in _sides_with_priors(model, human, prior)
        )
        return dbac(one, two, epsilon)
    if aggregate == "per_caption":
        omegas = _omegas(model, human, given, prior)
        compared = supported & np.isfinite(omegas[0]) & np.isfinite(omegas[1])
        one, two = (
            _mean(omegas_of_side, side.mentions * compared)
            for omegas_of_side, side in zip(omegas, (model, human), strict=True)
        )
        return dbac(one, two, epsilon)
    weights = human.mentions if aggregate == "weighted" else np.ones_like(human.mentions)
    return _mean(pair_scores(model, human, given, prior, epsilon), weights * supported)


def _sides_with_priors(model: Side, human: Side, prior: str) -> list[tuple[Side, Float64Array]]:
    """Both sides, where P(other) comes from the chosen prior."""
    priors: Mapping[str, tuple[Float64Array, Float64Array]] = {
        "counts": (model.other, human.other),
        "shared": (human.other, human.other),
        "none": (np.ones_like(human.other), np.ones_like(human.other)),
    }
    return list(zip((model, human), priors[prior], strict=True))


def _omegas(
    model: Side, human: Side, given: Float64Array, prior: str
) -> tuple[Float64Array, Float64Array]:
    ratio = np.ones_like(given) if prior == "none" else given
    one, two = (
        omega(side.quality, shown, ratio) for side, shown in _sides_with_priors(model, human, prior)
    )
    return one, two


def _marginal(side: Side, shown: Float64Array, given: Float64Array, prior: str) -> Float64Array:
    factor = 1.0 if prior == "none" else shown.mean(axis=-1) / given.mean(axis=-1)
    return side.overall * factor


def _mean(values: Float64Array, weights: Float64Array) -> Float64Array:
    """The weighted mean over the last two axes without NaN values."""
    known = np.isfinite(values)
    used = np.where(known, weights, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.where(known, values, 0.0) * used).sum(axis=(-2, -1)) / used.sum(axis=(-2, -1))
