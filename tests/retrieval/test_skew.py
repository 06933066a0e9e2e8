"""Skews, Bias@k and divergences against worked cases, plain loops and whole lists of rankings."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.retrieval.formulas import weighted_counts, weighted_places
from bias_pipeline.retrieval.skew import (
    bias_at,
    fair_bias,
    fair_divergence,
    fair_extreme,
    fair_ndkl,
    ndkl,
    ranking_divergence,
    skews,
    target_shares,
)

HALF = np.array([0.5, 0.5])
RANKINGS = st.lists(st.integers(0, 2), min_size=4, max_size=12).filter(
    lambda item: set(item) == {0, 1, 2}
)


def plain_ndkl(ranking: list[int], target: np.ndarray, k: int) -> float:
    """As its definition reads: top by top."""
    total = 0.0
    for i in range(1, k + 1):
        shares = [ranking[:i].count(group) / i for group in range(len(target))]
        ranking_divergence = sum(
            p * math.log(p / q) for p, q in zip(shares, target, strict=True) if p
        )
        total += ranking_divergence / math.log2(i + 1)
    return total / sum(1 / math.log2(i + 1) for i in range(1, k + 1))


def onehot(ranking: list[int], n_groups: int) -> np.ndarray:
    return np.eye(n_groups)[ranking]


@pytest.mark.parametrize(
    ("counts", "target", "k", "floor", "expected"),
    [
        ([75, 25], [0.5, 0.5], 100, "1/k", [math.log(1.5), math.log(0.5)]),
        ([75, 25], [0.75, 0.25], 100, "1/k", [0.0, 0.0]),
        ([100, 0], [0.5, 0.5], 100, "1/k", [math.log(2), math.log(0.02)]),  # 0 is 1 of 100
        ([100, 0], [0.5, 0.5], 100, 1e-10, [math.log(2), math.log(1e-10)]),
        ([6, 6], [0.5, 0.5], 10, "1/k", [math.log(1.2)] * 2),  # more than k are tied
    ],
)
def test_skews_are_those_worked_by_hand(counts, target, k, floor, expected):
    result = skews(np.array(counts, float), np.array(target), k, floor, "e")
    assert result == pytest.approx(expected)


def test_a_group_without_images_has_no_skew_and_bits_are_nats_over_the_logarithm_of_two():
    target = target_shares(np.array([3, 3, 0]), "dataset")
    nats, bits = (skews(np.array([3.0, 1.0, 0.0]), target, 4, "1/k", log) for log in ("e", "2"))
    assert np.isnan(nats).tolist() == [False, False, True]
    assert nats == pytest.approx(bits * math.log(2), nan_ok=True)


@given(RANKINGS, st.integers(1, 12))
def test_ndkl_is_what_its_definition_says(ranking, k):
    k = min(k, len(ranking))
    target = target_shares(np.bincount(ranking, minlength=3), "dataset")
    result = ndkl(onehot(ranking, 3)[:k], target, k, "e")
    assert result == pytest.approx(plain_ndkl(ranking, target, k))


@given(RANKINGS)
def test_the_largest_skew_is_never_below_zero(ranking):
    counts = np.bincount(ranking[:4], minlength=3).astype(float)
    target = target_shares(np.bincount(ranking, minlength=3), "dataset")
    assert np.nanmax(skews(counts, target, 4, 1e-10, "e")) >= -1e-12


def test_bias_at_k_is_refused_for_three_groups():
    with pytest.raises(ValueError, match="two groups"):
        bias_at(np.ones(3))


def all_rankings(sizes: list[int]) -> list[tuple[int, ...]]:
    images = [group for group, size in enumerate(sizes) for _ in range(size)]
    return list(permutations(images))


def mean_over_all(sizes: list[int], value: object) -> float:
    numbers = [value(ranking) for ranking in all_rankings(sizes)]
    return float(np.mean(numbers))


@pytest.mark.parametrize("sizes", [[4, 3], [3, 2, 2], [5, 1, 1]])
@pytest.mark.parametrize("floor", ["1/k", 1e-3])
@pytest.mark.parametrize("largest", [True, False])
def test_the_null_of_the_ends_is_the_mean_over_all_rankings(sizes, floor, largest):
    target, k = target_shares(np.array(sizes), "dataset"), 3

    def end(ranking: tuple[int, ...]) -> float:
        counts = np.bincount(ranking[:k], minlength=len(sizes)).astype(float)
        built_skews = skews(counts, target, k, floor, "e")
        return float(built_skews.max() if largest else built_skews.min())

    result = fair_extreme(np.array(sizes), target, k, floor, "e", largest=largest, level=0.95)
    assert result.value == pytest.approx(mean_over_all(sizes, end))


@pytest.mark.parametrize("sizes", [[4, 3], [3, 2, 2]])
@pytest.mark.parametrize("log", ["e", "2"])
def test_the_null_of_divergences_is_the_mean_over_all_rankings(sizes, log):
    target, k = target_shares(np.array(sizes), "uniform"), 4

    def of_top(ranking: tuple[int, ...]) -> float:
        counts = np.bincount(ranking[:k], minlength=len(sizes)).astype(float)
        return float(ranking_divergence(counts, target, k, log))

    def of_tops(ranking: tuple[int, ...]) -> float:
        return float(ndkl(onehot(list(ranking), len(sizes))[:k], target, k, log))

    array = np.array(sizes)
    assert fair_divergence(array, target, k, log) == pytest.approx(mean_over_all(sizes, of_top))
    assert fair_ndkl(array, target, k, log) == pytest.approx(mean_over_all(sizes, of_tops))


def test_the_null_of_bias_is_that_of_the_data():
    result = fair_bias(np.array([600, 400]), 100, 0.95)
    assert result.value == pytest.approx(0.2)
    assert -0.05 < result.low < 0.1 < 0.3 < result.high < 0.45


def test_the_interval_of_the_null_holds_what_it_says():
    sizes, k = np.array([500, 300, 200]), 60
    target = target_shares(sizes, "dataset")
    result = fair_extreme(sizes, target, k, "1/k", "e", largest=True, level=0.9)
    draws = np.random.default_rng(0).multivariate_hypergeometric(sizes, k, 20_000)
    greatest = skews(draws.astype(float), target, k, "1/k", "e").max(axis=1)
    assert 0.89 < np.mean((greatest >= result.low) & (greatest <= result.high)) < 0.97


@pytest.mark.parametrize(
    ("ties", "counts"),
    [("stable", [2, 1]), ("all", [2, 2]), ("expected", [5 / 3, 4 / 3])],
)
def test_ties_are_counted_as_is_said(ties, counts):
    groups, blocks = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    result = weighted_counts(np.ones((1, 4)), groups, 2, 3, ties, blocks)
    assert result[0] == pytest.approx(counts)


@pytest.mark.parametrize("ties", ["stable", "all", "expected"])
@given(seed=st.integers(0, 1000))
def test_places_come_to_the_counts(ties, seed):
    random = np.random.default_rng(seed)
    weights = random.poisson(1.0, (5, 12)).astype(float)
    weights[:, 0] += 1
    groups, blocks = random.integers(0, 3, 12), np.cumsum(random.integers(0, 2, 12))
    blocks = blocks - blocks[0]
    places = weighted_places(weights, groups, 3, 6, ties, blocks)
    counts = weighted_counts(weights, groups, 3, 6, ties, blocks)
    assert places.sum(axis=1) == pytest.approx(counts)
