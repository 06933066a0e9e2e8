"""Intervals of shares, against published values, SciPy and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from bias_pipeline.stats.bootstrap import Draws, share_of, summary
from bias_pipeline.stats.compare import paired_difference
from bias_pipeline.stats.shares import difference_ends, effective_trials, wilson

Z = 1.959963984540054


@pytest.mark.parametrize(("events", "trials"), [(0, 30), (1, 30), (15, 30), (30, 30), (2, 7989)])
def test_wilson_is_scipys(events, trials):
    expected = scipy_stats.binomtest(events, trials).proportion_ci(method="wilson")
    assert wilson(events / trials, trials, Z) == pytest.approx((expected.low, expected.high))


def test_newcombes_worked_example():
    """56 of 70 against 48 of 80, unpaired (Newcombe 1998, table II, method 10)."""
    sides = [(k / n, *wilson(k / n, n, Z)) for k, n in ((56, 70), (48, 80))]
    assert difference_ends(sides[0], sides[1], 0.0) == pytest.approx((0.0524, 0.3339), abs=1e-4)


@given(st.integers(0, 60), st.integers(1, 60))
def test_no_interval_is_without_width_and_all_hold_the_share(events, trials):
    share = min(events, trials) / trials
    low, high = wilson(share, trials, Z)
    assert 0 <= low <= share <= high <= 1
    assert high - low > 0


def test_observations_of_one_image_are_worth_as_many_as_their_images_at_least():
    assert effective_trials(0.0, 0.0, 500, 100) == 100
    assert effective_trials(0.2, math.sqrt(0.16 / 500), 500, 100) == pytest.approx(500)
    assert effective_trials(0.2, 1.0, 500, 100) == 100


def count_draws(events: np.ndarray, weights: np.ndarray) -> Draws:
    resampled = (weights @ events / weights.sum(axis=1))[:, None]
    draws = Draws(np.array([events.mean()]), resampled, trained=False)
    return share_of(draws, len(events), len(events))


def test_rare_events_are_covered_in_a_simulation():
    """An error of 1.7 % on 100 images, whose bootstrap interval covered it in 78 of 100."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        interval = summary(
            count_draws((rng.random(100) < 0.017) * 1.0, rng.poisson(1.0, (200, 100)))
        )
        covered += interval.ci_low <= 0.017 <= interval.ci_high
    assert covered >= 0.93 * 400


@pytest.mark.parametrize("n", [50, 400])
def test_differences_of_rare_events_are_told_apart_as_often_as_said(n):
    rng = np.random.default_rng(n)
    low = 0
    for _ in range(300):
        weights = rng.poisson(1.0, (200, n))
        one, two = (count_draws((rng.random(n) < 0.1) * 1.0, weights) for _ in range(2))
        low += paired_difference(one, two).p_value < 0.05
    assert low <= 0.07 * 300


def test_ten_wrong_of_a_hundred_against_none_is_seen():
    """At 50 images in most cases; as one attacker's score it was in 22 of 100."""
    rng = np.random.default_rng(1)
    seen_in = 0
    for _ in range(200):
        weights = rng.poisson(1.0, (200, 50))
        wrong = count_draws((rng.random(50) < 0.1) * 1.0, weights)
        seen_in += paired_difference(wrong, count_draws(np.zeros(50), weights)).p_value < 0.05
    assert seen_in >= 0.5 * 200


def test_p_falls_below_a_level_where_the_interval_leaves_0():
    weights = np.random.default_rng(2).poisson(1.0, (300, 200))
    for k in range(20):
        events = np.zeros(200)
        events[:k] = 1
        result = paired_difference(
            count_draws(events, weights), count_draws(np.zeros(200), weights)
        )
        assert (result.p_value < 0.05) == (result.ci_low > 0)
