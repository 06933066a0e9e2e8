"""Exact tests of the groups that queries retrieve, against lists of all draws and against scipy."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bias_pipeline.retrieval import formulas as retrieval
from bias_pipeline.retrieval.formulas import finite_population, p_of_counts


@pytest.fixture(autouse=True)
def no_law_is_cached() -> None:
    """Chances that one test had drawn are not another's."""
    retrieval._chances_by_likelihood.cache_clear()


def p_of(counts: tuple[int, ...], sizes: tuple[int, ...]) -> float:
    return float(p_of_counts(np.array([[counts]]), np.array([sizes]))[0])


def test_p_by_hand():
    """Of 10 ways to draw 2 of 3 men and 2 women, one has two women, three two men, six both."""
    assert [p_of(item, (3, 2)) for item in ((0, 2), (2, 0), (1, 1))] == pytest.approx(
        [0.1, 0.4, 1.0]
    )


def test_few_men_from_a_pool_of_men_are_seen():
    """Entropy is the same of 32 and 68 men of 100, and of the latter a blind draw has many."""
    few, many = (p_of((men, 100 - men), (600, 369)) for men in (32, 68))
    assert few < 1e-8 < 0.05 < many


@given(st.integers(1, 300), st.integers(1, 300), st.data())
def test_two_groups_have_the_p_of_fishers_exact_test(one, two, data):
    k = data.draw(st.integers(1, min(60, one + two)))
    first = data.draw(st.integers(max(0, k - two), min(k, one)))
    table = [[first, one - first], [k - first, two - k + first]]
    expected = stats.fisher_exact(table).pvalue
    assert p_of((first, k - first), (one, two)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("sizes", [(4, 3), (2, 3, 4), (2, 2, 2, 2)])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_p_is_the_share_of_draws_that_are_no_likelier(sizes, k):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    draws = [
        tuple(np.bincount(groups[list(rows)], minlength=len(sizes)).tolist())
        for rows in combinations(range(len(groups)), k)
    ]
    for count in set(draws):
        no_likelier = sum(draws.count(draw) <= draws.count(count) for draw in draws)
        assert p_of(count, sizes) == pytest.approx(no_likelier / len(draws))


@given(st.lists(st.integers(5, 60), min_size=2, max_size=3), st.integers(1, 10))
def test_blind_draws_have_small_p_no_more_often_than_they_say(sizes, k):
    ways, chances = retrieval.ways_of(np.array(sizes), k)
    p_values = p_of_counts(ways[None], np.array([sizes]))
    for level in (0.3, 0.05, 0.01):
        assert np.exp(chances)[p_values <= level].sum() <= level + 1e-9


def test_drawn_p_is_that_of_listed_ones(monkeypatch):
    listed = p_of((12, 3, 5), (30, 40, 50))
    monkeypatch.setattr(retrieval, "_ENUMERATED", 0)
    retrieval._chances_by_likelihood.cache_clear()
    assert p_of((12, 3, 5), (30, 40, 50)) == pytest.approx(listed, rel=0.1)


def test_what_cannot_be_listed_has_no_p_of_zero():
    assert p_of((100, *[0] * 6), (100,) * 7) == pytest.approx(1 / 100_001)


def test_several_splits_count_twice_their_mean():
    alone = [p_of((2, 8), sizes) for sizes in ((30, 40), (50, 40))]
    both = p_of_counts(np.array([[[2, 8]], [[2, 8]]]), np.array([[30, 40], [50, 40]]))[0]
    assert both == pytest.approx(min(1.0, 2 * np.mean(alone)))


@given(st.permutations([0, 1, 2]))
def test_names_of_groups_do_not_matter(order):
    counts, sizes = np.array([12, 3, 5]), np.array([30, 40, 50])
    renamed = p_of(tuple(counts[order].tolist()), tuple(sizes[order].tolist()))
    assert renamed == pytest.approx(p_of((12, 3, 5), (30, 40, 50)), rel=1e-9)


def test_the_spread_of_a_draw_is_narrowed_as_the_hypergeometric_law_is():
    n, k, share = 200, 150, 0.3
    drawn, binomial = stats.hypergeom(n, int(n * share), k).std(), stats.binom(k, share).std()
    assert finite_population(n, k) == pytest.approx(drawn / binomial)
