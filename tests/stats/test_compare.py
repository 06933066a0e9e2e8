"""Comparing two results from their stored draws."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from bias_pipeline.errors import DataError
from bias_pipeline.stats.bootstrap import Bootstrap, Draws, Estimate
from bias_pipeline.stats.compare import holm, paired_difference, significance_groups
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.scoring import Accuracy
from tests.stats.test_bootstrap import predictions


def draws(model: float, human: float = 0.6, seed: int = 1, resamples: int = 300) -> Draws:
    """A captioner's difference of sides."""
    tables = [
        ScoreTable.from_predictions(
            [predictions([accuracy] * 3, n=200, pool=200, seed=s)], Accuracy()
        )
        for accuracy, s in ((model, seed), (human, 9))
    ]
    drawn = Bootstrap(resamples).estimate(tables, {"d": lambda m, h: m - h})["d"].draws
    assert drawn is not None
    return drawn


def test_a_clear_difference_is_found_and_none_of_a_captioner_from_itself():
    assert paired_difference(draws(0.9), draws(0.65, seed=2)).p_value < 0.01
    assert paired_difference(draws(0.8), draws(0.8)).p_value == 1


def test_the_difference_is_that_of_the_scores_either_way_round():
    one, two = draws(0.9), draws(0.7, seed=2)
    expected = one.per_seed.mean() - two.per_seed.mean()
    assert paired_difference(one, two).value == pytest.approx(expected)
    assert paired_difference(two, one).value == pytest.approx(-expected)


def test_what_both_share_does_not_count_against_them():
    """The human side is the same, so the difference is as uncertain as the model sides alone."""
    one, two = draws(0.9), draws(0.7, seed=2)
    alone = [draws(0.9, human=0.0), draws(0.7, human=0.0, seed=2)]
    assert paired_difference(one, two).image_std == pytest.approx(
        paired_difference(*alone).image_std
    )


def test_results_of_other_settings_are_refused():
    with pytest.raises(DataError, match="same seeds and stats"):
        paired_difference(draws(0.9), draws(0.7, resamples=200))


def test_the_paired_interval_covers_in_a_simulation():
    """Two captioners of equal truth on the same images: 0 is missed at most as often as said."""
    missed = 0
    for trial in range(150):
        one, two = (draws(0.7, seed=1000 * k + trial, resamples=100) for k in (1, 2))
        result = paired_difference(one, two)
        missed += not result.ci_low <= 0 <= result.ci_high
    assert scipy_stats.binomtest(missed, 150, 0.05, alternative="greater").pvalue > 0.01


def test_a_constant_difference_is_certain():
    one, two = (Draws(np.full(2, value), np.full((5, 2), value)) for value in (1.0, 0.0))
    assert paired_difference(one, two).p_value == 0


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([math.nan, 0.02], [math.nan, 0.02])],
)
def test_holm_by_hand(p_values, expected):
    assert holm(p_values) == pytest.approx(expected, nan_ok=True)


def test_captioners_that_all_differ_have_a_letter_each():
    letters = significance_groups("abc", dict.fromkeys(combinations("abc", 2), True))
    assert sorted(letters.values()) == ["a", "b", "c"]


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.data())))
def test_two_share_a_letter_exactly_if_they_do_not_differ(drawn):
    n, data = drawn
    names = [chr(ord("A") + i) for i in range(n)]
    differ = {pair: data.draw(st.booleans()) for pair in combinations(names, 2)}
    letters = significance_groups(names, differ)
    assert {pair: not set(letters[pair[0]]) & set(letters[pair[1]]) for pair in differ} == differ


def test_an_estimate_equals_one_of_other_draws():
    """Draws are how a number came about, no part of it."""
    plain = Estimate(0.5, 0.1, 0.1, 0.3, 0.7, math.inf, 2)
    assert plain == Estimate(**{**vars(plain), "draws": Draws(np.ones(2), np.ones((3, 2)))})
