"""Belief revision and bias ratios against published and worked cases."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.language.formulas import (
    bias_ratio,
    gender_score,
    likeliest_group,
    ratio_to_neutral,
    revision,
)
from tests.oracles import oracle

SHARES = st.floats(0, 1)


def score_of(likelihood: float, similarity: float, probability: float) -> float:
    arrays = (np.array(array, np.float64) for array in (likelihood, similarity, probability))
    return float(gender_score(*arrays))


def ratio(*values: float, group: int = 0) -> float:
    return float(bias_ratio(np.array([values], np.float64), group)[0])


def rows(table: int) -> list[dict[str, Any]]:
    rows = oracle("gender_score")["bias_ratio_tables"]["rows"]
    return [row for row in rows if row["table"] == table]


def cut(value: float) -> float:
    """As the paper prints: two decimals, the rest dropped."""
    return math.floor(value * 100 + 1e-9) / 100


# --- the published examples


@pytest.mark.parametrize("who", ["man", "woman"])
def test_the_published_example_to_the_last_digit(who):
    case = oracle("gender_score")["worked_example_published"]
    result = score_of(case[who]["lm"], case[who]["sim"], case["p_object"])
    assert result == pytest.approx(case[who]["score"], abs=1e-12, rel=0)


def test_the_published_ratio_and_estimate():
    case = oracle("gender_score")["worked_example_published"]
    scores = [case["man"]["score"], case["woman"]["score"]]
    assert 100 * ratio(*scores) == pytest.approx(case["ratio_to_m_percent"], abs=1e-10)
    assert ("man", "woman")[likeliest_group(np.array([scores]))[0][0]] == case["estimated_gender"]


def test_the_second_example_from_either_of_its_two_published_values():
    case = oracle("gender_score")["second_example_published"]
    keys = ("score_man_in_README", "score_man_in_another_output_file")
    ratios = [ratio(case[key], case["score_woman"]) for key in keys]
    assert ratios == pytest.approx(case["ratio_from_either"], abs=1e-12)


# --- edges


def test_edge_values():
    for case in oracle("gender_score")["edge_values"]["cases"]:
        result = score_of(case["lm"], case["sim"], case["p_object"])
        assert result == pytest.approx(case["score"], abs=1e-12), case


@pytest.mark.parametrize(
    ("similarity", "score"),
    [(-1.0, 0.0), (-1.0000001, 0.0), (1.0000001, 1.0), (math.nan, math.nan)],
)
def test_what_rounding_puts_outside_is_clamped_and_what_is_unknown_stays(similarity, score):
    np.testing.assert_equal(score_of(0.2, similarity, 0.3), score)


@given(SHARES, st.floats(-1, 1), SHARES)
def test_a_score_is_a_probability(likelihood, similarity, probability):
    assert 0 <= score_of(likelihood, similarity, probability) <= 1


@given(st.floats(0.01, 0.99), st.floats(0, 0.98), SHARES)
def test_more_similarity_never_lowers_a_score(likelihood, similarity, probability):
    more = score_of(likelihood, similarity + 0.01, probability)
    assert more >= score_of(likelihood, similarity, probability) - 1e-12


@given(st.floats(-0.99, 0.99))
def test_an_object_that_is_everywhere_revises_nothing(similarity):
    assert revision(np.array(similarity), np.array(1.0)) == 1.0


# --- published tables


def test_table_2_follows_from_its_averages_cut_off_not_rounded():
    for row in rows(2):
        lines = [ratio(row["avg_man"], row["avg_woman"], group=k) for k in (0, 1)]
        assert lines[0] == pytest.approx(row["eq1_to_m"], abs=1e-12)
        assert [cut(x) for x in lines] == [row["published_to_m"], row["published_to_w"]]


def test_table_3_follows_from_its_averages_in_41_of_42_cells():
    matches = []
    for row in rows(3):
        man, woman, person = (np.array([row[f"avg_{k}"]]) for k in ("man", "woman", "person"))
        to_man, to_woman = (ratio_to_neutral(group, person)[0] for group in (man, woman))
        assert to_man == pytest.approx(row["eq2_m"], abs=1e-12)
        lines = [to_man, to_woman, ratio(row["avg_man"], row["avg_woman"])]
        printed = row["published_ratio_m_w_tom"]
        matches += [cut(item) == message for item, message in zip(lines, printed, strict=True)]
    assert (sum(matches), len(matches)) == (41, 42)


def test_table_5_follows_from_its_counts():
    for row in rows(5):
        lines = [cut(ratio(row["man"], row["woman"], group=k)) for k in (0, 1)]
        assert lines == row["published_to_m_to_w"]


# --- shares and ties


@pytest.mark.parametrize("values", [[0.0, 0.1], [0.2, -0.1], [math.nan, 0.2]])
def test_a_ratio_of_what_is_not_positive_is_no_number(values):
    assert math.isnan(ratio(*values))


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=5))
def test_the_shares_of_all_groups_sum_to_one(values):
    assert sum(ratio(*values, group=k) for k in range(len(values))) == pytest.approx(1)


@pytest.mark.parametrize(
    ("scores", "group", "tied"),
    [([0.1, 0.4, 0.4], 1, True), ([0.3, 0.1, 0.2], 0, False), ([math.nan, 0.4], -1, False)],
    ids=["a tie", "three groups", "unknown"],
)
def test_the_estimate_is_the_group_with_the_highest_score(scores, group, tied):
    groups, ties = likeliest_group(np.array([scores]))
    assert (groups.tolist(), ties.tolist()) == ([group], [tied])
