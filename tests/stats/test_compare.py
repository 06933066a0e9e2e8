from __future__ import annotations

import math

import pytest

from bias_pipeline.scoring import Accuracy
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.stats.compare import Sides, holm, paired_difference
from bias_pipeline.stats.scores import ScoreTable
from tests.stats.test_bootstrap import predictions


def sides(model: float, human: float = 0.6, seed: int = 1) -> Sides:
    tables = [
        ScoreTable.of([predictions([accuracy] * 3, n=200, pool=200, seed=s)], Accuracy())
        for accuracy, s in ((model, seed), (human, 9))
    ]
    return Sides(*tables)


def compare(first: Sides, second: Sides) -> Estimate:
    return paired_difference(first, second, lambda m, h: m - h, Bootstrap(resamples=300))


def test_a_captioner_does_not_differ_from_itself() -> None:
    assert compare(sides(0.8), sides(0.8)).p_value == 1


def test_a_clear_difference_is_found() -> None:
    assert compare(sides(0.9), sides(0.7, seed=2)).p_value < 0.01


def test_the_difference_is_that_of_the_scores() -> None:
    one, two = sides(0.9), sides(0.7, seed=2)
    expected = one.model.per_seed().mean() - two.model.per_seed().mean()
    assert compare(one, two).value == pytest.approx(expected)


def test_swapping_captioners_turns_the_sign() -> None:
    one, two = sides(0.9), sides(0.7, seed=2)
    assert compare(one, two).value == pytest.approx(-compare(two, one).value)


def test_pairing_narrows_the_interval_of_equal_humans() -> None:
    one, two = sides(0.9), sides(0.7, seed=2)
    alone = Bootstrap(resamples=300).estimate([one.model, one.human], {"d": lambda m, h: m - h})[
        "d"
    ]
    assert compare(one, two).image_std < math.sqrt(2) * alone.image_std


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_holm_leaves_nan_out() -> None:
    assert holm([math.nan, 0.02])[1] == 0.02
