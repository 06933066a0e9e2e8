"""Permuted labels, rankings fixed: level, power, and what must make no difference."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.retrieval.estimates import mean_excess, narrow_intervals, permuted_p
from bias_pipeline.retrieval.ranked import Ranked
from bias_pipeline.retrieval.skew import fair_ranker
from bias_pipeline.stats.bootstrap import Bootstrap

WIDTH, N, QUERIES, K = 16, 400, 10, 40
KEYS = np.random.default_rng(99).integers(0, 2**63, N).astype(np.uint64)
MEN = 0.62


def rankings(
    trial: int, lean: float = 0.0, seeds: int = 2, alike: bool = False, k: int = K, two: int = 2
) -> list[Ranked]:
    """Random queries, which prefer the first or last group in turn by ``lean``."""
    random = np.random.default_rng(trial)
    codes = np.where(random.random(N) < MEN, 0, 1 + random.integers(0, two - 1, N))
    pictures = random.standard_normal((N, WIDTH))
    pictures[:, 0] = np.where(codes == 0, 1.0, -1.0)
    queries = random.standard_normal((1 if alike else QUERIES, WIDTH))
    queries = np.repeat(queries, QUERIES, axis=0) if alike else queries
    queries[:, 0] = lean * np.where(np.arange(QUERIES) % 2, 1.0, -1.0)
    collected = []
    for _ in range(seeds):
        rows = random.permutation(N)[: N // 2]
        vectors = queries.astype(np.float32), pictures[rows].astype(np.float32)
        collected.append(Ranked.rank(*vectors, rows, codes[rows], two, k))
    return collected


def p_of(ranked: Sequence[Ranked], permutations: int = 99) -> float:
    return permuted_p(ranked, KEYS, permutations, 0)[0]


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seeds", [1, 3])
def test_fair_rankings_have_small_p_as_often_as_they_say(seeds, alike):
    """Of 150 trials at .1 more than 27 or fewer than 5 are less likely than one in a thousand."""
    small = sum(p_of(rankings(trial, 0.0, seeds, alike)) <= 0.1 for trial in range(150))
    assert 5 <= small <= 27


def test_weak_leanings_in_both_directions_are_seen():
    assert sum(p_of(rankings(trial, 0.8)) < 0.05 for trial in range(30)) >= 27


def test_leanings_to_the_smaller_group_are_seen_where_entropy_is_that_of_a_fair_ranker():
    """Of a pool with 62 % men a query that retrieves 38 % of them is as fair by entropy."""
    codes = (np.arange(N) >= MEN * N).astype(np.int64)
    men, women = np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)
    top = np.concatenate([men[:19], women[:31]])[None]
    ranked = Ranked(top, codes[top], np.bincount(codes), 50, np.arange(N), codes)
    null = fair_ranker(ranked.sizes, 50)
    entropy = ranked.entropies(np.ones((1, 50)), np.sort(top[0]))[0, 0]
    assert null.low < entropy < null.high
    assert p_of([ranked], 999) < 0.005


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_images_does_not_matter(seed):
    ranked = rankings(1, 0.3)
    places = np.random.default_rng(seed).permutation(N)  # old row to new row
    keys = np.empty_like(KEYS)
    keys[places] = KEYS
    moved = [
        Ranked(places[item.images], item.groups, item.sizes, K, places[item.pool], item.codes)
        for item in ranked
    ]
    one, other = permuted_p(ranked, KEYS, 49, 0), permuted_p(moved, keys, 49, 0)
    assert one[0] == other[0]
    assert one[1].tolist() == other[1].tolist()


def swap_groups(ranking: Ranked) -> Ranked:
    return Ranked(
        ranking.images,
        1 - ranking.groups,
        ranking.sizes[::-1],
        ranking.k,
        ranking.pool,
        1 - ranking.codes,
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_swapping_groups_swaps_whom_there_are_too_many_of(trial):
    ranked = rankings(trial, 1.0)
    one, other = mean_excess(ranked), mean_excess([swap_groups(item) for item in ranked])
    assert one == pytest.approx(other[:, ::-1])


def test_several_groups_are_permuted_together():
    assert p_of(rankings(1, 2.0, two=4)) == 0.01


def estimates(ranked: Sequence[Ranked], stats: Bootstrap) -> dict[PartName, object]:
    rows = np.unique(np.concatenate([ranking.images.ravel() for ranking in ranked]))
    part = PartName("score")

    def evaluate(weights: np.ndarray) -> dict[PartName, np.ndarray]:
        shares = [
            ranking.counts(weights, rows)[..., 0].mean(axis=1) / ranking.k for ranking in ranked
        ]
        return {part: np.stack(shares, axis=-1)}

    estimated = stats.estimate_weighted(KEYS[rows], evaluate)
    return narrow_intervals(estimated, ranked, stats.level)


@pytest.mark.parametrize("k", [40, 180])
def test_intervals_are_as_wide_as_a_blind_draw_varies(k):
    """One query, k of 200: the spread of the share of men is the hypergeometric law's."""
    stats, spreads = Bootstrap(resamples=200), []
    for trial in range(20):
        (ranking,) = rankings(trial, seeds=1, k=k)
        one = Ranked(
            ranking.images[:1], ranking.groups[:1], ranking.sizes, k, ranking.pool, ranking.codes
        )
        (value,) = estimates([one], stats).values()
        spreads.append(value.image_std)
    n = N // 2
    expected = np.sqrt(MEN * (1 - MEN) / k * (n - k) / (n - 1))
    assert np.mean(spreads) == pytest.approx(expected, rel=0.15)
