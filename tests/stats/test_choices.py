"""Means over equally good choices, whose spread is a third source of error."""

import math

import numpy as np
import pytest

from bias_pipeline.stats.bootstrap import Draws, Estimate, summary, with_p_value
from bias_pipeline.stats.choices import mean_over_choices

RNG = np.random.default_rng(3)
SEEDS, RESAMPLES = 5, 400


def estimate(value: float, spread: float = 0.01) -> Estimate:
    per_seed = value + spread * RNG.normal(size=SEEDS)
    return summary(Draws(per_seed, per_seed + spread * RNG.normal(size=(RESAMPLES, 1))))


def test_one_choice_changes_no_interval():
    one = estimate(0.2)
    mean = mean_over_choices([one], 0.95)
    assert (mean.value, mean.ci_low, mean.ci_high) == (one.value, one.ci_low, one.ci_high)


def test_choices_that_agree_add_nothing():
    one = estimate(0.2)
    mean = mean_over_choices([one] * 3, 0.95)
    assert (mean.choice_std, mean.error) == (0.0, pytest.approx(one.error))


def test_the_variance_of_choices_is_added():
    mean = mean_over_choices([estimate(v) for v in (0.1, 0.2, 0.4)], 0.95)
    without = summary(mean.draws)
    assert mean.error == pytest.approx(math.hypot(without.error, mean.choice_std / math.sqrt(3)))


def test_two_choices_that_differ_say_little():
    """One degree of freedom: a t quantile of nearly 12.7 of their standard error."""
    mean = mean_over_choices([estimate(0.1, 1e-6), estimate(0.2, 1e-6)], 0.95)
    assert (mean.ci_high - mean.ci_low) / 2 == pytest.approx(12.706 * 0.05, rel=1e-3)


def test_intervals_cover_the_mean_of_all_choices():
    """Simulated: 95 % intervals of five choices, each with its own true value."""
    covered = 0
    for _ in range(400):
        truths = 0.05 * RNG.normal(size=5)
        mean = mean_over_choices([estimate(float(truth), 0.02) for truth in truths], 0.95)
        covered += mean.ci_low <= 0 <= mean.ci_high
    assert 0.92 <= covered / 400 <= 0.99


def test_p_is_that_of_the_wider_interval():
    result = with_p_value(mean_over_choices([estimate(0.1), estimate(0.3)], 0.95), 0.0)
    assert result.p_value > 0.05
    assert result.ci_low < 0


def test_without_draws_what_the_choice_leaves_alone_stays():
    one, other = (Estimate(*pair, *[math.nan] * 4, 3) for pair in ((0.1, 0.02), (0.2, 0.03)))
    assert mean_over_choices([one, one], 0.95).seed_std == 0.02
    assert math.isnan(mean_over_choices([one, other], 0.95).seed_std)
