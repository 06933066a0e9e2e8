"""Is one captioner's score above another's? Paired over images and seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.stats.scores import ScoreTable

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sides:
    """The score tables of one captioner's two sides."""

    model: ScoreTable
    human: ScoreTable


def paired_difference(
    first: Sides,
    second: Sides,
    relation: Callable[[FloatArray, FloatArray], FloatArray],
    bootstrap: Bootstrap,
) -> Estimate:
    """The difference of two captioners' scores, first minus second.

    Splits are drawn by image, so both captioners were tested on the same images with the same
    seeds; images are resampled for both at once and seeds are subtracted pair by pair.

    Args:
        first: one captioner.
        second: the other, of the same seeds.
        relation: how a captioner's sides make its score.
        bootstrap: how intervals are made.

    Returns:
        The estimate, with a two-sided p from its normal approximation.
    """
    tables = [first.model, first.human, second.model, second.human]
    found = bootstrap.estimate(
        tables, {"difference": lambda m1, h1, m2, h2: relation(m1, h1) - relation(m2, h2)}
    )["difference"]
    half = (found.ci_high - found.ci_low) / 2
    p_value = 1.0 if half == 0 else two_sided_p(found.value, half, bootstrap.level)
    return Estimate(**{**vars(found), "p_value": p_value})


def two_sided_p(value: float, half_width: float, level: float = 0.95) -> float:
    """P of a value whose interval at a level has the given half-width, by the normal law.

    Example:
        >>> round(two_sided_p(1.0, 1.0), 3)
        0.05
    """
    from scipy import special

    z = float(special.ndtri((1 + level) / 2)) * abs(value) / half_width
    return math.erfc(z / math.sqrt(2))


def holm(p_values: Sequence[float]) -> list[float]:
    """P values adjusted for testing several hypotheses at once (Holm 1979).

    NaN stays NaN and does not count as a hypothesis.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    floor = 0.0
    for rank, (p, i) in enumerate(order):
        floor = max(floor, min(1.0, p * (len(order) - rank)))
        adjusted[i] = floor
    return adjusted
