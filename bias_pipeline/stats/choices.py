"""Means over equally good choices (such as word vectors) and over a captioner's samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.stats.bootstrap import (
    Draws,
    Estimate,
    estimate_with_ends,
    fill_void_resamples,
    quantile,
    summary,
)
from bias_pipeline.stats.compare import merged_p


def mean_over_choices(estimates: Sequence[Estimate], level: float) -> Estimate:
    """The mean of a number over several choices. The spread over choices widens the interval.

    ``choice_std**2 / C`` is added to the variance over attackers and images. Satterthwaite's
    formula for all three terms gives the degrees of freedom, so the interval is wide if two choices
    differ much.

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
    return _widen_by_choices(
        fill_void_resamples(summary(_mean_draws(drawn), level), level), std, len(values), level
    )


def mean_over_samples(estimates: Sequence[Estimate], level: float) -> Estimate:
    """The mean of a number over several samples of captions of the same images.

    The draws of the samples are averaged, since in each resampling an image counts equally often in
    every sample. So the interval includes how much captions of one image differ. ``choice_std`` is
    the spread between samples. If the metric has its own test, the p values of samples are merged
    (:func:`~bias_pipeline.stats.compare.merged_p`).

    Example:
        >>> drawn = np.array([[-1.0], [1.0]])
        >>> one, two = (summary(Draws(np.full(1, v), v + drawn)) for v in (1.0, 2.0))
        >>> mean = mean_over_samples([one, two], 0.95)
        >>> mean.value, round(mean.choice_std, 3), mean.image_std == one.image_std
        (1.5, 0.707, True)
    """
    values = np.array([estimate.value for estimate in estimates])
    p_value = merged_p([estimate.p_value for estimate in estimates])
    std = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    drawn = [estimate.draws for estimate in estimates if estimate.draws is not None]
    if len(drawn) < len(estimates):
        return replace(_without_draws(estimates, float(values.mean()), std), p_value=p_value)
    if any(math.isnan(estimate.error_below) for estimate in estimates):
        mean = fill_void_resamples(summary(_mean_draws(drawn), level), level)
    else:
        mean = _mean_of_uneven(estimates, drawn, level)
    if any(math.isnan(estimate.ci_low) for estimate in estimates):
        mean = replace(mean, ci_low=math.nan, ci_high=math.nan)
    return replace(mean, choice_std=std, p_value=p_value)


def _mean_of_uneven(
    estimates: Sequence[Estimate], drawn: Sequence[Draws], level: float
) -> Estimate:
    """The mean of shares, or of differences between two shares.

    Each half of the interval is the mean of the samples' halves, times a factor. The factor says
    how much the mean varies under resampling, divided by how much the samples vary. If nothing
    varies, the factor is 1.
    """
    draws = _mean_draws(drawn)
    spread = float(np.mean([sample.image_std for sample in drawn]))
    ratio = draws.image_std / spread if spread > 0 else 1.0
    value = float(draws.per_seed.mean())
    below, above = (
        ratio * float(np.mean(ends))
        for ends in (
            [estimate.value - estimate.ci_low for estimate in estimates],
            [estimate.ci_high - estimate.value for estimate in estimates],
        )
    )
    if ratio > 0:
        trials = float(np.mean([sample.trials for sample in drawn])) / ratio**2
        draws = replace(draws, trials=trials)
    return estimate_with_ends(value, value - below, value + above, draws.image_std, level, draws)


def _mean_draws(drawn: Sequence[Draws]) -> Draws:
    return Draws(
        np.mean([draws.per_seed for draws in drawn], axis=0),
        np.mean([draws.resampled for draws in drawn], axis=0),
        drawn[0].trained,
        cross_fitted=drawn[0].cross_fitted,
    )


def _without_draws(estimates: Sequence[Estimate], value: float, std: float) -> Estimate:
    """The mean without an interval, but with the spread over seeds if all choices have the same."""
    seed_std = estimates[0].seed_std if std == 0 else math.nan
    return Estimate(value, seed_std, n_seeds=estimates[0].n_seeds, choice_std=std)


def _widen_by_choices(estimate: Estimate, std: float, n_choices: int, level: float) -> Estimate:
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
