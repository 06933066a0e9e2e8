"""Twins with and without a planted bias: false alarms, power, and the size of every distance.

A part of the draws of the founders' simulation; counts may differ from its rates by chance alone.
``experiments/counterfactual`` counts false alarms in 400 draws of more sets.
"""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from bias_pipeline.pairs.distances import common_shift
from experiments.counterfactual.twin_worlds import compare, twin_corpus

pytestmark = pytest.mark.slow

TESTS = ("beyond_pictures", "shift", "words", "attractiveness", "any class")


@cache
def rejections(n_sets: int, draws: int, noise: float, lean: float, a_to_t: float) -> dict[str, int]:
    """How often each test rejects."""
    counts = dict.fromkeys(TESTS, 0)
    for draw in range(draws):
        one = compare(
            twin_corpus(
                n_sets, 5000 + draw, noise, adjectives=1.0, adjective_lean=lean, a_to_t=a_to_t
            )
        )
        raw = {gap.name: gap.p_value for gap in one.gaps}
        p_values = {
            "beyond_pictures": one.distance_tests["beyond_pictures"][1],
            "shift": one.distance_tests["shift"][1],
            "words": one.words[0].p_value if one.words else 1.0,
            "attractiveness": raw["attractiveness"],
            "any class": min(g.adjusted_p for g in one.deciding if not np.isnan(g.adjusted_p)),
        }
        for name in TESTS:
            counts[name] += p_values[name] <= 0.05
    return counts


@pytest.mark.parametrize("test", TESTS)
def test_without_a_bias_a_test_rejects_in_one_of_twenty_draws(test):
    draws = 60
    assert rejections(20, draws, 0.2, 0.0, 0.0)[test] <= stats.binom.ppf(0.999, draws, 0.05)


@pytest.mark.parametrize(
    ("n_sets", "lean", "a_to_t", "test", "share"),
    [
        (20, 0.6, 0.0, "attractiveness", 1.0),
        (20, 0.6, 0.0, "shift", 0.98),
        (20, 0.6, 0.0, "words", 0.83),
        (50, 0.3, 0.0, "shift", 0.88),
        (50, 0.3, 0.0, "words", 0.42),
        (20, 0.0, 0.5, "shift", 0.95),
        (50, 0.0, 0.5, "words", 0.81),
    ],
)
def test_a_planted_bias_is_noticed_as_often_as_in_the_simulation(n_sets, lean, a_to_t, test, share):
    draws = 30
    fewest = stats.binom.ppf(0.001, draws, min(share, 0.97))
    assert rejections(n_sets, draws, 0.0, lean, a_to_t)[test] >= fewest


@cache
def sizes(noise: float, lean: float, a_to_t: float) -> np.ndarray:
    """Means over four worlds of 200 sets: three distances in points, the shift."""
    rows = []
    for seed in range(4):
        one = compare(
            twin_corpus(200, seed, noise, adjectives=1.0, adjective_lean=lean, a_to_t=a_to_t)
        )
        distances = one.distances
        rows.append(
            [
                100 * one.mean_over_sets(distances.samples),
                100 * one.mean_over_sets(distances.pairs - distances.samples),
                100 * one.beyond_pictures.value,
                1000 * common_shift(one.shifts(one.pictures.model.words)),
            ]
        )
    return np.mean(rows, axis=0)


@pytest.mark.parametrize(
    ("noise", "lean", "a_to_t", "expected"),
    [
        (0.0, 0.0, 0.0, (81.8, -0.3, 0.05, 0.02)),
        (0.2, 0.0, 0.0, (81.8, 0.64, 0.03, -0.01)),
        (0.0, 0.6, 0.0, (81.8, 0.0, 0.44, 6.96)),
        (0.0, 0.0, 0.5, (88.2, 0.1, 0.27, 6.29)),
    ],
)
def test_distances_are_as_large_as_in_the_simulation(noise, lean, a_to_t, expected):
    # Their own errors over four worlds, and words without content that are listed otherwise.
    differences = np.abs(sizes(noise, lean, a_to_t) - expected)
    assert (differences <= (1.0, 1.0, 0.25, 1.2)).all(), differences
