"""Compares the numbers of two captioners, paired by image and seed, and correlates numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.errors import DataError
from bias_pipeline.stats.bootstrap import (
    Draws,
    Estimate,
    estimate_with_ends,
    quantile,
    summary,
    two_sided_p,
)
from bias_pipeline.stats.shares import NORMAL_95, difference_ends, wilson


def paired_difference(first: Draws, second: Draws, level: float = 0.95) -> Estimate:
    """The difference of two results, as the first minus the second.

    Both results have the same splits, and the same image weights in each resampling. So numbers are
    subtracted for each seed and each resampling. The difference of two shares has Newcombe's
    interval, which also works for events that are rare or absent.

    Args:
        first: one result's headline.
        second: the other result's headline, with the same seeds and settings of the bootstrap.
        level: coverage of the interval, in (0, 1).

    Returns:
        The estimate, with a two-sided p value from the same test as the interval. With a single
        seed, both depend on an assumption about how much attackers vary; see
        :func:`~bias_pipeline.stats.bootstrap.combined_error`.

    Raises:
        DataError: if seeds or resamplings differ in number.

    Example:
        >>> import numpy as np
        >>> one = Draws(np.array([0.3, 0.5]), np.array([[0.2, 0.4], [0.4, 0.6]]))
        >>> paired_difference(one, one).p_value
        1.0
    """
    if first.resampled.shape != second.resampled.shape:
        raise DataError(
            f"results of {first.resampled.shape[1]} and {second.resampled.shape[1]} seeds, "
            f"{first.resampled.shape[0]} and {second.resampled.shape[0]} resamplings cannot be "
            "compared pair by pair; run both with the same seeds and stats"
        )
    both_shares = first.is_share and second.is_share
    difference = _of_shares(first, second, level) if both_shares else summary(first - second, level)
    return replace(difference, p_value=two_sided_p(difference))


def _of_shares(first: Draws, second: Draws, level: float) -> Estimate:
    """The difference of two shares, with an interval that uses their correlation."""
    draws, z = first - second, quantile(level)
    ends = []
    for share in (first, second):
        value = float(share.per_seed.mean())
        ends.append((value, *wilson(value, share.trials, z)))
    low, high = difference_ends(ends[0], ends[1], _correlation(first, second))
    return estimate_with_ends(
        float(draws.per_seed.mean()), low, high, draws.image_std, level, draws
    )


def _correlation(first: Draws, second: Draws) -> float:
    """The correlation of two numbers under resampling, in [-1, 1]; 0 if one is constant."""
    spread = first.image_std * second.image_std
    if not spread > 0:
        return 0.0
    covariance = np.cov(first.resampled.mean(axis=-1), second.resampled.mean(axis=-1))[0, 1]
    return float(np.clip(covariance / spread, -1.0, 1.0))


def p_of_interval(value: float, half_width: float, level: float = 0.95) -> float:
    """The p value that follows from the half-width of an interval, by the normal distribution.

    Example:
        >>> round(p_of_interval(1.0, 1.0), 3)
        0.05
    """
    error = half_width / quantile(level)
    return math.erfc(abs(value) / error / math.sqrt(2))


def merged_p(p_values: Sequence[float]) -> float:
    """One p value for several tests of the same hypothesis, however the tests depend on each other.

    The result is twice the mean of the p values, at most 1 (Vovk and Wang 2020). A single p value
    is returned unchanged.

    Example:
        >>> merged_p([0.02]), merged_p([0.02, 0.04])
        (0.02, 0.06)
    """
    return float(np.minimum(1, np.mean(p_values) * min(2, len(p_values))))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values, adjusted for testing several hypotheses at once (Holm 1979).

    NaN remains NaN and does not count as a hypothesis.

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


def significance_groups(
    names: Sequence[str], differ: Mapping[tuple[str, str], bool]
) -> dict[str, str]:
    """Letters for each name. Two names have a letter in common exactly if they do not differ.

    Letters are assigned by the compact letter display (insertion and absorption, Piepho 2004).

    Args:
        names: in the order of the table.
        differ: for each pair, whether the two names differ. Pairs are in the order of ``names``.

    Returns:
        Name to its letters.

    Example:
        >>> differ = {("a", "b"): False, ("b", "c"): False, ("a", "c"): True}
        >>> significance_groups(["a", "b", "c"], differ)
        {'a': 'a', 'b': 'ab', 'c': 'b'}
    """
    columns = [frozenset(names)]
    for pair, different in differ.items():
        if different:
            columns = _split(columns, *pair)
    place = {name: i for i, name in enumerate(names)}
    columns.sort(key=lambda column: sorted(place[name] for name in column))
    return {
        name: "".join(_letter(i) for i, column in enumerate(columns) if name in column)
        for name in names
    }


def _split(columns: Sequence[frozenset[str]], one: str, two: str) -> list[frozenset[str]]:
    """Split columns so that none contains both names, and drop subsets of other columns."""
    parts: list[frozenset[str]] = []
    for column in columns:
        both = one in column and two in column
        parts += [column - {one}, column - {two}] if both else [column]
    distinct = list(dict.fromkeys(parts))
    return [part for part in distinct if not any(part < other for other in distinct)]


def _letter(number: int) -> str:
    """The letters a, b, ... z, followed by a1, b1, ..."""
    turn, place = divmod(number, 26)
    return chr(ord("a") + place) + (str(turn) if turn else "")


FEWEST_CORRELATED = 3  # two points always lie on a line


def pearson(one: Sequence[float], two: Sequence[float]) -> Estimate:
    """Pearson's correlation of N pairs, in [-1, 1], or NaN for N < 3 or constant values.

    Example:
        >>> pearson([1, 2, 3, 4], [2, 4, 5, 9]).value.__round__(2)
        0.96
    """
    n = len(one)
    if n < FEWEST_CORRELATED or min(np.ptp(one), np.ptp(two)) == 0:
        return Estimate(math.nan)
    return of_pearson(float(np.corrcoef(one, two)[0, 1]), n)


def of_pearson(value: float, n: int) -> Estimate:
    """The interval and the test of a correlation of ``n`` pairs, from its value alone.

    The interval and the test hold for independent, normally distributed pairs. The interval comes
    from Fisher's method (artanh of the correlation). For three pairs it is [-1, 1].

    Args:
        value: the correlation.
        n: pairs, at least 3.

    Example:
        >>> linear = of_pearson(0.9, 7)
        >>> [round(x, 2) for x in (linear.value, linear.ci_low, linear.ci_high, linear.p_value)]
        [0.9, 0.46, 0.99, 0.01]
    """
    from scipy import stats  # imported here, since cells do not need scipy

    bounded = min(max(value, -1.0), 1.0)
    if abs(bounded) == 1:
        return Estimate(bounded, ci_low=bounded, ci_high=bounded, p_value=0.0)
    half = NORMAL_95 / math.sqrt(n - 3) if n > FEWEST_CORRELATED else math.inf
    centre = math.atanh(bounded)
    t = bounded * math.sqrt((n - 2) / (1 - bounded**2))
    return Estimate(
        bounded,
        ci_low=math.tanh(centre - half),
        ci_high=math.tanh(centre + half),
        p_value=float(2 * stats.t.sf(abs(t), n - 2)),
    )
