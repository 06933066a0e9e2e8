"""Means over equally good choices, such as word vectors: a third source of error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.stats.bootstrap import Draws, Estimate, quantile, steady, summary


def mean_over_choices(estimates: Sequence[Estimate], level: float) -> Estimate:
    """The mean of one number under several choices, whose spread widens the interval.

    ``choice_std**2 / C`` is added to the variance of attackers and images; degrees of freedom are
    Satterthwaite's of all three terms, so two choices that differ much give a wide interval.

    Args:
        estimates: of the same images and seeds, under C choices.
        level: coverage of the interval, in (0, 1).

    Returns:
        The mean, with ``choice_std``; without an interval if nothing was resampled.

    Example:
        >>> import numpy as np
        >>> drawn = np.array([[-1.0, -1.0], [1.0, 1.0]])
        >>> one, two = (summary(Draws(np.full(2, v), v + drawn)) for v in (1.0, 2.0))
        >>> mean = mean_over_choices([one, two], 0.95)
        >>> mean.value, round(mean.choice_std, 3), mean.error > one.error
        (1.5, 0.707, True)
    """
    values = np.array([estimate.value for estimate in estimates])
    std = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    drawn = [estimate.draws for estimate in estimates if estimate.draws is not None]
    if len(drawn) < len(estimates):
        return _without_draws(estimates, float(values.mean()), std)
    mean = Draws(
        np.mean([draws.per_seed for draws in drawn], axis=0),
        np.mean([draws.resampled for draws in drawn], axis=0),
        drawn[0].trained,
        cross_fitted=drawn[0].cross_fitted,
    )
    return _widened(steady(summary(mean, level), level), std, len(values), level)


def _without_draws(estimates: Sequence[Estimate], value: float, std: float) -> Estimate:
    """The mean without an interval; with the seeds' spread if all choices agree."""
    nan = math.nan
    seed_std = estimates[0].seed_std if std == 0 else nan
    return Estimate(value, seed_std, nan, nan, nan, nan, estimates[0].n_seeds, choice_std=std)


def _widened(estimate: Estimate, std: float, n_choices: int, level: float) -> Estimate:
    """The estimate with the error of the choices added."""
    if not std > 0:
        return replace(estimate, choice_std=std)
    added = std**2 / n_choices
    variance = estimate.error**2 + added
    squares = estimate.error**4 / estimate.freedom + added**2 / (n_choices - 1)
    error, freedom = math.sqrt(variance), variance**2 / squares
    half = quantile(level, freedom) * error
    low, high = sorted((estimate.value, estimate.corrected))
    return replace(
        estimate,
        ci_low=low - half,
        ci_high=high + half,
        error=error,
        freedom=freedom,
        choice_std=std,
    )
