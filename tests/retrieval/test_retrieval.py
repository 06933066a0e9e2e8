"""Rankings, and entropies at their top, against worked cases and lists."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.retrieval import formulas as retrieval
from bias_pipeline.retrieval.formulas import (
    normalised_entropy,
    ranks_of_own,
    top_ranks,
    weighted_counts,
)
from tests.oracles import oracle

CASES = [
    "all_equal_two",
    "one_group_only",
    "mixed_two",
    "seven_groups_uniform",
    "seven_groups_four_used",
    "seven_groups_mixed",
]


@pytest.mark.parametrize("name", CASES)
def test_fairness_is_that_of_the_worked_cases(name):
    retrieval_fairness = oracle("retrieval_debias")["retrieval_fairness"]
    (case,) = (item for item in retrieval_fairness["cases"] if item["name"] == name)
    counts = [np.array(item, float) for item in case["top_k_group_counts_per_concept"]]
    mean = np.mean([normalised_entropy(item) for item in counts])
    assert mean == pytest.approx(case["fairness"], abs=retrieval_fairness["tolerance_abs"])


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8).filter(any))
def test_entropy_lies_between_its_ends_whatever_the_order_of_groups(counts):
    forth, back = (normalised_entropy(np.array(item, float)) for item in (counts, counts[::-1]))
    assert 0 <= forth <= 1
    assert forth == pytest.approx(back, abs=1e-12)


def test_nothing_retrieved_has_no_entropy_and_a_single_group_is_refused():
    assert math.isnan(normalised_entropy(np.zeros(3)))
    with pytest.raises(ValueError, match="two groups"):
        normalised_entropy(np.ones(1))


def rankings_of(queries: np.ndarray, items: np.ndarray, depth: int) -> np.ndarray:
    return np.argsort(-(queries @ items.T), axis=1, kind="stable")[:, :depth]


@pytest.mark.parametrize("block", [7, 64, 1000])
@pytest.mark.parametrize("depth", [1, 30, 200])
def test_the_top_is_that_of_sorting_all(block, depth, monkeypatch):
    monkeypatch.setattr(retrieval, "_BLOCK", block)
    random = np.random.default_rng(0)
    queries = random.integers(-2, 3, (5, 4)).astype(np.float32)  # whole numbers, so many tie
    items = random.integers(-2, 3, (200, 4)).astype(np.float32)
    assert (top_ranks(queries, items, depth) == rankings_of(queries, items, depth)).all()


def test_more_than_there_is_cannot_be_ranked():
    with pytest.raises(ValueError, match="depth 4"):
        top_ranks(np.ones((1, 2), np.float32), np.ones((3, 2), np.float32), 4)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=20))
def test_weights_count_as_if_images_stood_several_times(ranking):
    weights, groups = (np.array(item) for item in zip(*ranking, strict=True))
    spelled_out = np.repeat(groups, weights)[:6]
    weighted_count = weighted_counts(weights[None].astype(float), groups, 3, 6)[0]
    assert weighted_count.tolist() == np.bincount(spelled_out, minlength=3).tolist()


@pytest.mark.parametrize("block", [1, 100_000])
def test_places_are_those_of_sorting_all(block, monkeypatch):
    monkeypatch.setattr(retrieval, "_BLOCK", block)
    random = np.random.default_rng(0)
    queries, items = random.integers(-1, 2, (2, 60, 4)).astype(np.float32)  # many tie
    order = rankings_of(queries, items, 60)
    wanted = [order[row].tolist().index(row) for row in range(60)]
    assert ranks_of_own(queries, items).tolist() == wanted
