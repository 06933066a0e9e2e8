"""Pearson's correlation against scipy's, and the published AnonymousBench."""

import math

import numpy as np
import pytest
from scipy import stats

from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.compare import of_pearson, pearson


@pytest.mark.parametrize("n", [4, 9, 40])
def test_value_interval_and_test_are_those_of_scipy(n):
    one, two = np.random.default_rng(n).normal(size=(2, n))
    ours, oracle = pearson(one.tolist(), two.tolist()), stats.pearsonr(one, two)
    interval = oracle.confidence_interval(0.95)
    measured = (ours.value, ours.ci_low, ours.ci_high, ours.p_value)
    assert measured == pytest.approx((oracle.statistic, *interval, oracle.pvalue))


@pytest.mark.parametrize(
    ("one", "two"), [([1, 2], [3, 5]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([], [])]
)
def test_it_is_absent_where_it_is_undefined(one, two):
    assert math.isnan(pearson(one, two).value)


def test_three_points_say_nothing_of_the_interval():
    correlation = of_pearson(0.9, 3)
    assert (correlation.ci_low, correlation.ci_high) == (-1.0, 1.0)


def test_on_a_line_it_is_one():
    on_a_line = Estimate(1.0, ci_low=1.0, ci_high=1.0, p_value=0.0)
    assert repr(pearson([1, 2, 3, 4], [2, 4, 6, 8])) == repr(on_a_line)
