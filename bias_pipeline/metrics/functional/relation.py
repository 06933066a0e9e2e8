"""How the model's score is compared with the human one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array


def difference(model: Float64Array, human: Float64Array) -> Float64Array:
    """Model minus human, neutral at 0 (LIC, Leakage).

    Example:
        >>> float(difference(np.float64(0.5), np.float64(0.4)).round(2))
        0.1
    """
    return model - human


def ratio(model: Float64Array, human: Float64Array) -> Float64Array:
    """Model divided by human, neutral at 1; NaN where the human score is 0.

    Example:
        >>> float(ratio(np.float64(0.5), np.float64(0.4)))
        1.25
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(human != 0, np.divide(model, human), np.nan)


def normalised(model: Float64Array, human: Float64Array) -> Float64Array:
    """(model - human) / (model + human), in [-1, 1] for positive scores, neutral at 0 (DBAC, DPA).

    NaN where both are 0.

    Example:
        >>> float(normalised(np.float64(0.6), np.float64(0.4)).round(3))
        0.2
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(model + human != 0, np.divide(model - human, model + human), np.nan)


@dataclass(frozen=True)
class Relation:
    """A relation by name.

    Attributes:
        of: the function of (model, human).
        neutral: its value when the two are equal.
        unit: of its values.
    """

    of: Callable[[Float64Array, Float64Array], Float64Array]
    neutral: float
    unit: str


RELATIONS: Mapping[str, Relation] = {
    "difference": Relation(difference, 0.0, "fraction"),
    "ratio": Relation(ratio, 1.0, "ratio"),
    "normalised": Relation(normalised, 0.0, "fraction"),
}
