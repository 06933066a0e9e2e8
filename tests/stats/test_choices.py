"""Means over equally good choices, whose spread is a third source of error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bias_pipeline.stats.bootstrap import Draws, Estimate, against, summary
from bias_pipeline.stats.choices import mean_over

RNG = np.random.default_rng(3)
SEEDS, RESAMPLES = 5, 400


def estimate(value: float, spread: float = 0.01) -> Estimate:
    per_seed = value + spread * RNG.normal(size=SEEDS)
    return summary(Draws(per_seed, per_seed + spread * RNG.normal(size=(RESAMPLES, 1))))


def test_one_choice_changes_no_interval() -> None:
    own = estimate(0.2)
    found = mean_over([own], 0.95)
    assert (found.value, found.ci_low, found.ci_high) == (own.value, own.ci_low, own.ci_high)


def test_choices_that_agree_add_nothing() -> None:
    own = estimate(0.2)
    found = mean_over([own, own, own], 0.95)
    assert (found.choice_std, found.error) == (0.0, pytest.approx(own.error))


def test_the_variance_of_choices_is_added() -> None:
    found = mean_over([estimate(v) for v in (0.1, 0.2, 0.4)], 0.95)
    without = summary(found.draws)  # type: ignore[arg-type]
    assert found.error == pytest.approx(math.hypot(without.error, found.choice_std / math.sqrt(3)))


def test_two_choices_that_differ_say_little() -> None:
    """One degree of freedom: a t quantile of nearly 12.7 of their standard error."""
    found = mean_over([estimate(0.1, 1e-6), estimate(0.2, 1e-6)], 0.95)
    assert (found.ci_high - found.ci_low) / 2 == pytest.approx(12.706 * 0.05, rel=1e-3)


def test_intervals_cover_the_mean_of_all_choices() -> None:
    """Simulated: 95 % intervals of five choices, each with its own true value."""
    covered = 0
    for _ in range(400):
        truths = 0.05 * RNG.normal(size=5)
        found = mean_over([estimate(float(truth), 0.02) for truth in truths], 0.95)
        covered += found.ci_low <= 0 <= found.ci_high
    assert 0.92 <= covered / 400 <= 0.99


def test_p_is_that_of_the_wider_interval() -> None:
    found = against(mean_over([estimate(0.1), estimate(0.3)], 0.95), 0.0)
    assert found.p_value > 0.05
    assert found.ci_low < 0


def test_without_draws_what_the_choice_leaves_alone_stays() -> None:
    nan = math.nan
    own = Estimate(0.1, 0.02, nan, nan, nan, nan, 3)
    other = Estimate(0.2, 0.03, nan, nan, nan, nan, 3)
    assert mean_over([own, own], 0.95).seed_std == 0.02
    assert math.isnan(mean_over([own, other], 0.95).seed_std)
