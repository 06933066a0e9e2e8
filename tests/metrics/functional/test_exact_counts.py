"""P of the groups that queries retrieve, against SciPy, lists of all rankings and simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from bias_pipeline.metrics.functional import exact_counts
from bias_pipeline.metrics.functional.exact_counts import (
    excess,
    p_of_counts,
    permuted,
    ways_to_fill,
)


@pytest.fixture(autouse=True)
def no_law_is_remembered() -> None:
    """A law that one test had drawn is not another's."""
    exact_counts._chances.cache_clear()


def p_of(counts: tuple[float, ...], sizes: tuple[int, ...]) -> float:
    k = round(sum(counts))
    return float(p_of_counts(np.array([[counts]], float), np.array([sizes]), k)[0])


@pytest.mark.parametrize("men", [0, 32, 55, 62, 75, 100])
def test_of_two_groups_it_is_fishers(men: int) -> None:
    table = [[men, 100 - men], [620 - men, 380 - 100 + men]]
    expected = scipy_stats.fisher_exact(table).pvalue
    assert p_of((men, 100 - men), (620, 380)) == pytest.approx(expected, rel=1e-6)


def test_too_few_of_the_larger_group_are_seen() -> None:
    """32 men of 100 from a pool with 62 % are as even as 68: entropy called that fair."""
    assert p_of((32, 68), (620, 380)) < 1e-9
    assert p_of((68, 32), (620, 380)) > 0.1


@pytest.mark.parametrize("sizes", [(4, 3), (2, 3, 4), (6, 1)])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_p_is_the_share_of_rankings_that_are_no_likelier(sizes: tuple[int, ...], k: int) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    drawn = [
        tuple(np.bincount(groups[list(rows)], minlength=len(sizes)))
        for rows in combinations(range(len(groups)), k)
    ]
    chance = {counts: drawn.count(counts) / len(drawn) for counts in set(drawn)}
    for counts, own in chance.items():
        expected = sum(other for other in chance.values() if other <= own * (1 + 1e-9))
        assert p_of(counts, sizes) == pytest.approx(expected)


@given(st.lists(st.integers(3, 30), min_size=2, max_size=3), st.integers(1, 8))
def test_small_p_are_no_more_frequent_than_they_say(sizes: list[int], k: int) -> None:
    ways = ways_to_fill(np.array(sizes), k).astype(float)
    chances = np.exp(exact_counts.log_chances(ways, np.array(sizes), k))
    p_values = p_of_counts(ways[None], np.array([sizes]), k)
    for level in (0.3, 0.05, 0.01):
        assert chances[p_values <= level].sum() <= level + 1e-9


def test_drawn_ways_give_nearly_the_p_of_listed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = p_of((3, 9, 8), (30, 40, 50))
    monkeypatch.setattr(exact_counts, "ENUMERATED", 0)
    exact_counts._chances.cache_clear()
    assert p_of((3, 9, 8), (30, 40, 50)) == pytest.approx(listed, rel=0.1)


def test_what_cannot_be_listed_has_no_p_of_zero() -> None:
    assert p_of((100, *[0] * 6), (100,) * 7) == pytest.approx(1e-5, rel=0.01)


def test_several_splits_count_twice_their_mean() -> None:
    counts, sizes = np.array([[[2.0, 8.0]]] * 2), np.array([[30, 40], [50, 40]])
    alone = [p_of_counts(counts[:1], size[None], 10)[0] for size in sizes]
    assert p_of_counts(counts, sizes, 10)[0] == pytest.approx(min(1.0, 2 * np.mean(alone)))


def test_the_group_above_its_share_is_the_one_in_excess() -> None:
    assert excess(np.array([10.0, 30.0, 60.0]), np.array([100, 500, 400]), 100).argmax() == 2


def tops(random: np.random.Generator, codes: np.ndarray, k: int, towards: float) -> np.ndarray:
    """(C, N) the tops of queries that share half of their direction; each prefers some group."""
    shared = random.normal(size=len(codes))
    preferred = random.choice([-1, 1], 20)[:, None] * towards * (2 * codes - 1)
    own = random.normal(size=(20, len(codes))) + shared + preferred
    top = np.zeros_like(own)
    np.put_along_axis(top, np.argsort(-own, axis=1)[:, :k], 1.0, axis=1)
    return top


def permuted_p(random: np.random.Generator, towards: float, k: int = 40) -> float:
    codes = (random.random(400) < 0.35).astype(np.int64)
    top = tops(random, codes, k, towards)
    sizes = np.bincount(codes, minlength=2)
    used = top.any(axis=0)
    return permuted(top[:, used], sizes, k, top @ np.eye(2)[codes]).p_value


def test_permuted_labels_keep_the_level_though_queries_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_counts, "PERMUTATIONS", 199)
    random = np.random.default_rng(0)
    small = sum(permuted_p(random, 0.0) <= 0.05 for _ in range(200))
    assert scipy_stats.binomtest(small, 200, 0.05).pvalue > 0.01


def test_permuted_labels_see_queries_that_prefer_different_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_counts, "PERMUTATIONS", 199)
    random = np.random.default_rng(1)
    assert sum(permuted_p(random, 0.3) <= 0.05 for _ in range(30)) >= 27


def test_permuting_more_images_than_are_retrieved_changes_little() -> None:
    """The labels of images that no query retrieves play a part by their number alone."""
    random = np.random.default_rng(2)
    codes = (random.random(400) < 0.35).astype(np.int64)
    top = tops(random, codes, 40, 0.15)
    sizes, counts = np.bincount(codes, minlength=2), top @ np.eye(2)[codes]
    used = top.any(axis=0)
    few, many = (permuted(own, sizes, 40, counts) for own in (top[:, used], top))
    assert few.p_value == pytest.approx(many.p_value, abs=0.02)
    assert few.score_std == pytest.approx(many.score_std, rel=0.1)
