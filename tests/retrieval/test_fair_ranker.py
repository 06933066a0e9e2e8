"""What a fair ranker has of the entropy at the top, against lists of all rankings."""

from itertools import combinations

import numpy as np
import pytest

from bias_pipeline.retrieval import formulas as retrieval
from bias_pipeline.retrieval import skew as fair
from bias_pipeline.retrieval.formulas import normalised_entropy
from bias_pipeline.retrieval.skew import fair_ranker


@pytest.fixture(autouse=True)
def no_distribution_is_cached() -> None:
    """A distribution that one test had drawn is not another's."""
    fair._entropy_distribution.cache_clear()


def every_draw(sizes: tuple[int, ...], k: int) -> list[float]:
    """The entropy of each set of k images, one by one."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    counts = [
        np.bincount(groups[list(rows)], minlength=len(sizes))
        for rows in combinations(range(len(groups)), k)
    ]
    return [float(normalised_entropy(count.astype(float))) for count in counts]


@pytest.mark.parametrize("sizes", [(4, 3), (2, 3, 4), (6, 1)])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_null_is_the_mean_of_all_sets(sizes, k):
    result = fair_ranker(np.array(sizes), k)
    assert result.value == pytest.approx(np.mean(every_draw(sizes, k)), abs=1e-12)


@pytest.mark.parametrize("sizes", [(4, 4), (3, 3, 3)])
def test_the_interval_of_the_null_leaves_out_no_more_than_its_tails(sizes):
    result, all_sets = fair_ranker(np.array(sizes), 4, 0.8), np.array(every_draw(sizes, 4))
    outside = (all_sets < result.low - 1e-12).mean(), (all_sets > result.high + 1e-12).mean()
    assert max(outside) <= 0.1 + 1e-12


def test_an_interval_of_drawn_sets_is_that_of_listed_ones(monkeypatch):
    sizes = np.array([30, 40, 50])
    listed = fair_ranker(sizes, 20)
    monkeypatch.setattr(retrieval, "_ENUMERATED", 0)
    fair._entropy_distribution.cache_clear()
    assert fair_ranker(sizes, 20) == pytest.approx(listed, abs=5e-3)


def test_seven_even_groups_are_not_drawn_evenly():
    assert fair_ranker(np.full(7, 1000), 100).value < 0.985


def test_who_takes_all_has_the_entropy_of_all():
    sizes = np.array([60, 40])
    assert fair_ranker(sizes, 100).value == pytest.approx(
        float(normalised_entropy(sizes.astype(float)))
    )


@pytest.mark.parametrize("k", [0, 101])
def test_the_null_refuses_depths_that_there_are_not(k):
    with pytest.raises(ValueError, match=f"k {k}"):
        fair_ranker(np.array([60, 40]), k)
