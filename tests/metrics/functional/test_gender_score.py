"""Belief revision and bias ratios against published and worked cases."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.metrics.functional.gender_score import (
    bias_ratio,
    estimated,
    gender_score,
    ratio_to_neutral,
    revision,
)
from tests.oracles import oracle

SHARES = st.floats(0, 1)


def scored(likelihood: float, similarity: float, probability: float) -> float:
    arrays = (np.array(array, np.float64) for array in (likelihood, similarity, probability))
    return float(gender_score(*arrays))


def cases() -> dict[str, Any]:
    return oracle("gender_score")


def rows(table: int) -> list[dict[str, Any]]:
    return [row for row in cases()["bias_ratio_tables"]["rows"] if row["table"] == table]


def cut(value: float) -> float:
    """As the paper prints: two decimals, the rest dropped."""
    return math.floor(value * 100 + 1e-9) / 100


# --- the published example


@pytest.mark.parametrize("who", ["man", "woman"])
def test_the_published_example_to_the_last_digit(who):
    case = cases()["worked_example_published"]
    result = scored(case[who]["lm"], case[who]["sim"], case["p_object"])
    assert result == pytest.approx(case[who]["score"], abs=1e-12, rel=0)


def test_the_published_ratio():
    case = cases()["worked_example_published"]
    scores = np.array([[case["man"]["score"], case["woman"]["score"]]])
    assert 100 * bias_ratio(scores)[0] == pytest.approx(case["ratio_to_m_percent"], abs=1e-10)


def test_the_published_estimate():
    case = cases()["worked_example_published"]
    groups, _ = estimated(np.array([[case["man"]["score"], case["woman"]["score"]]]))
    assert ("man", "woman")[groups[0]] == case["estimated_gender"]


def test_the_second_example_from_either_of_its_two_published_values():
    case = cases()["second_example_published"]
    for key, expected in zip(
        ("score_man_in_README", "score_man_in_another_output_file"),
        case["ratio_from_either"],
        strict=True,
    ):
        result = bias_ratio(np.array([[case[key], case["score_woman"]]]))[0]
        assert result == pytest.approx(expected, abs=1e-12)


# --- edges


def test_edge_values():
    for case in cases()["edge_values"]["cases"]:
        result = scored(case["lm"], case["sim"], case["p_object"])
        assert result == pytest.approx(case["score"], abs=1e-12), case


@pytest.mark.parametrize("similarity", [-1.0, -1.0000001, 1.0000001])
def test_what_rounding_puts_outside_is_clamped(similarity):
    assert scored(0.2, similarity, 0.3) == (1.0 if similarity > 0 else 0.0)


def test_an_unknown_similarity_is_no_number():
    assert math.isnan(scored(0.2, math.nan, 0.3))


@given(SHARES, st.floats(-1, 1), SHARES)
def test_a_score_is_a_probability(likelihood, similarity, probability):
    assert 0 <= scored(likelihood, similarity, probability) <= 1


@given(st.floats(0.01, 0.99), st.floats(0, 0.98), SHARES)
def test_more_similarity_never_lowers_a_score(likelihood, similarity, probability):
    more = scored(likelihood, similarity + 0.01, probability)
    assert more >= scored(likelihood, similarity, probability) - 1e-12


@given(st.floats(-0.99, 0.99))
def test_an_object_that_is_everywhere_revises_nothing(similarity):
    assert revision(np.array(similarity), np.array(1.0)) == 1.0


# --- published tables


def test_table_2_follows_from_its_averages_cut_off_not_rounded():
    for row in rows(2):
        means = np.array([[row["avg_man"], row["avg_woman"]]])
        assert bias_ratio(means)[0] == pytest.approx(row["eq1_to_m"], abs=1e-12)
        lines = [cut(bias_ratio(means, k)[0]) for k in (0, 1)]
        assert lines == [row["published_to_m"], row["published_to_w"]]


def test_table_3_follows_from_its_averages_in_41_of_42_cells():
    matches = []
    for row in rows(3):
        man, woman, person = (np.array([row[f"avg_{k}"]]) for k in ("man", "woman", "person"))
        assert ratio_to_neutral(man, person)[0] == pytest.approx(row["eq2_m"], abs=1e-12)
        lines = [
            ratio_to_neutral(man, person)[0],
            ratio_to_neutral(woman, person)[0],
            bias_ratio(np.stack([man, woman], axis=1))[0],
        ]
        printed = row["published_ratio_m_w_tom"]
        matches += [cut(item) == message for item, message in zip(lines, printed, strict=True)]
    assert (sum(matches), len(matches)) == (41, 42)


def test_table_5_follows_from_its_counts():
    for row in rows(5):
        counts = np.array([[row["man"], row["woman"]]], np.float64)
        lines = [cut(bias_ratio(counts, k)[0]) for k in (0, 1)]
        assert lines == row["published_to_m_to_w"]


# --- shares and ties


@pytest.mark.parametrize("values", [[0.0, 0.1], [0.2, -0.1], [math.nan, 0.2]])
def test_a_ratio_of_what_is_not_positive_is_no_number(values):
    assert math.isnan(bias_ratio(np.array([values]))[0])


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=5))
def test_the_shares_of_all_groups_sum_to_one(values):
    array = np.array([values])
    assert sum(bias_ratio(array, k)[0] for k in range(len(values))) == pytest.approx(1)


def test_three_groups_have_an_estimate_too():
    groups, ties = estimated(np.array([[0.1, 0.4, 0.4], [0.3, 0.1, 0.2]]))
    assert (groups.tolist(), ties.tolist()) == ([1, 0], [True, False])


def test_an_unknown_score_has_no_estimate():
    groups, ties = estimated(np.array([[math.nan, 0.4]]))
    assert (groups.tolist(), ties.tolist()) == ([-1], [False])
