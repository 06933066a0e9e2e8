"""Agreement against worked examples of the literature."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.stats.raters import answer_counts, fleiss, krippendorff, with_interval

# Four observers, twelve units, five values; 0 for a missing one (Krippendorff 2011, section E).
OBSERVERS = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
])  # fmt: skip
COUNTS = np.array([[(unit == value).sum() for value in range(1, 6)] for unit in OBSERVERS.T])
# Fourteen raters, ten subjects, five categories.
SUBJECTS = np.array([
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
])  # fmt: skip


@pytest.mark.parametrize(
    ("agreement", "expected"),
    [
        (krippendorff(COUNTS), 0.743),
        (krippendorff(COUNTS, ordinal=True), 0.815),
        (fleiss(SUBJECTS), 0.210),
    ],
    ids=["alpha of names", "alpha of ranks", "kappa"],
)
def test_agreement_is_that_of_the_worked_example(agreement, expected):
    assert agreement == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("counts", [[[2, 0]], [[1, 0], [0, 1]]], ids=["one answer", "no pairs"])
def test_kappa_that_is_undefined_is_nan(counts):
    assert math.isnan(fleiss(np.array(counts)))


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=20))
def test_kappa_is_at_most_one(answers):
    kappa = fleiss(answer_counts(answers, list("abc")))
    assert math.isnan(kappa) or kappa <= 1


def direct_alpha(units: list[list[int]]) -> float:
    """By pairs, as the definition says: mean disagreement within units over that of all values."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    within = sum(sum(a != b for a in unit for b in unit) / (len(unit) - 1) for unit in units) / len(
        values
    )
    among = sum(a != b for a in values for b in values) / (len(values) * (len(values) - 1))
    return 1 - within / among


@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_all_pairs(seed):
    generator = np.random.default_rng(seed)
    units = [generator.integers(0, 3, generator.integers(1, 5)).tolist() for _ in range(20)]
    counts = answer_counts([list(map(str, unit)) for unit in units], ["0", "1", "2"])
    assert krippendorff(counts) == pytest.approx(direct_alpha(units))


def test_kappa_of_unequal_numbers_of_raters_is_that_of_the_book():
    """1 - sum x (m - x) / m over answers and images, by sum (m - 1) times (1 - sum p^2)."""
    x = COUNTS[:-1]  # the last unit has one value
    m, p = x.sum(axis=1, keepdims=True), x.sum(axis=0) / x.sum()
    apart, chance = (x * (m - x) / m).sum(), (m - 1).sum() * (1 - (p**2).sum())
    assert fleiss(COUNTS) == pytest.approx(1 - apart / chance)


def test_agreement_of_all_is_one():
    assert krippendorff(np.array([[3, 0], [0, 3]])) == fleiss(np.array([[3, 0], [0, 3]])) == 1.0


@pytest.mark.parametrize("counts", [[[1, 0], [0, 1]], [[2, 0], [3, 0]]])
def test_where_nothing_can_disagree_there_is_no_number(counts):
    assert math.isnan(krippendorff(np.array(counts)))
    assert math.isnan(fleiss(np.array(counts)))


@pytest.mark.slow
def test_intervals_cover_what_raters_of_known_agreement_have():
    """Two raters who agree on 8 of 10 images of two equal answers: alpha tends to 0.6."""
    covered = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        first = generator.integers(0, 2, 100)
        second = np.where(generator.random(100) < 0.8, first, 1 - first)
        counts = np.stack([(first == k).astype(int) + (second == k) for k in (0, 1)], axis=1)
        _, low, high = with_interval(counts, krippendorff)
        covered += low <= 0.6 <= high
    assert covered >= 88


def test_one_image_has_no_interval():
    interval = with_interval(np.array([[2, 1]]), krippendorff)
    assert list(map(math.isnan, interval)) == [False, True, True]
