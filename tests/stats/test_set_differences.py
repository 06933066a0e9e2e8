"""Which of two captioners changes more with the group: formulas against plain rewrites."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from bias_pipeline.stats.shares import difference_ends
from bias_pipeline.stats.sign_flips import size_difference

NAMES = [f"set {number}" for number in range(10)]


def by_set(values) -> dict[str, float]:
    return dict(zip(NAMES, np.asarray(values).tolist(), strict=True))


def draw(seed: int, mean: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 0.3, len(NAMES))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_p_of_two_captioners_is_that_of_all_signs_of_their_difference(sign):
    one, two = draw(0, 0.6), draw(1, 0.2)
    gap = size_difference(by_set(sign * one), by_set(sign * two), [(0, 1), (0, 1)])
    values = one - two
    null = np.abs(np.array(list(itertools.product([1, -1], repeat=10))) @ values)
    observed = abs(values.sum())
    mid_p = (null > observed + 1e-9).mean() + (np.abs(null - observed) < 1e-9).mean() / 2
    assert gap.p_value == pytest.approx(mid_p)
    assert gap.value == pytest.approx(values.mean())
    known = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (gap.ci_low, gap.ci_high) == pytest.approx(tuple(known))


def test_differences_of_opposite_sign_are_compared_by_their_sizes():
    one, two = draw(0, 0.6), draw(1, -0.6)
    gap = size_difference(by_set(one), by_set(two), [(0, 1), (-1, 0)])
    assert gap.value == pytest.approx(one.mean() + two.mean())


def test_exchanged_captioners_turn_the_difference():
    data = by_set(draw(0, 0.6)), by_set(draw(1, 0.2))
    one, two = (size_difference(*order, [(0, 1), (0, 1)]) for order in (data, data[::-1]))
    assert (one.value, one.ci_low) == pytest.approx((-two.value, -two.ci_high))
    assert one.p_value == two.p_value


def test_few_sets_that_differ_have_the_interval_of_both_numbers():
    one, two = by_set([0.5] * 2 + [0] * 8), by_set([0] * 10)
    gap = size_difference(one, two, [(-0.1, 0.3), (-0.2, 0.2)])
    expected = difference_ends((0.1, -0.1, 0.3), (0.0, -0.2, 0.2), 0.0)
    assert (gap.ci_low, gap.ci_high) == pytest.approx(expected)
    assert math.isnan(gap.p_value)


def test_sets_of_one_captioner_alone_are_left_out():
    one = by_set(draw(0, 0.6))
    two = {**by_set(draw(1, 0.2)), "other": 1.0}
    fewer = size_difference(one, two, [(0, 1), (0, 1)])
    assert fewer == size_difference(one, by_set(draw(1, 0.2)), [(0, 1), (0, 1)])
