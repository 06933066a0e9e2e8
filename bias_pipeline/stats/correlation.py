"""Pearson's correlation with Fisher's interval and the test against 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from bias_pipeline.stats.shares import NORMAL_95

FEWEST_CORRELATED = 3  # two points always lie on a line


class Correlation(NamedTuple):
    """A correlation; all but ``n`` are NaN where it is undefined."""

    value: float  # in [-1, 1]
    low: float  # of its 95 % interval
    high: float  # of its 95 % interval
    p_value: float  # of a t test against 0
    n: int  # pairs


def pearson(one: Sequence[float], two: Sequence[float]) -> Correlation:
    """Pearson's correlation of N pairs; undefined for fewer than three, or where one is constant.

    Example:
        >>> pearson([1, 2, 3, 4], [2, 4, 5, 9]).value.__round__(2)
        0.96
    """
    n = len(one)
    if n < FEWEST_CORRELATED or min(np.ptp(one), np.ptp(two)) == 0:
        return Correlation(math.nan, math.nan, math.nan, math.nan, n)
    return of_pearson(float(np.corrcoef(one, two)[0, 1]), n)


def of_pearson(value: float, n: int) -> Correlation:
    """Interval and test of a correlation of n pairs, as where only it is printed.

    Both hold for pairs that are independent and normally distributed. The interval is Fisher's, by
    the artanh of the correlation; for three pairs it is [-1, 1].

    Args:
        value: the correlation.
        n: pairs, at least 3.

    Example:
        >>> [round(x, 2) for x in of_pearson(0.9, 7)]
        [0.9, 0.46, 0.99, 0.01, 7]
    """
    bounded = min(max(value, -1.0), 1.0)
    if abs(bounded) == 1:
        return Correlation(bounded, bounded, bounded, 0.0, n)
    half = NORMAL_95 / math.sqrt(n - 3) if n > FEWEST_CORRELATED else math.inf
    centre = math.atanh(bounded)
    t = bounded * math.sqrt((n - 2) / (1 - bounded**2))
    return Correlation(
        bounded,
        math.tanh(centre - half),
        math.tanh(centre + half),
        float(2 * stats.t.sf(abs(t), n - 2)),
        n,
    )
