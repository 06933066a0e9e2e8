"""The answers on the screen and in the file: made-up results."""

import math
from dataclasses import replace

import pytest

from bias_pipeline.report.answer_texts import answer_lines, screen
from bias_pipeline.report.answers import Answer, answers_of, shorten_reason
from bias_pipeline.report.verdict import verdict
from bias_pipeline.results.rows import Result
from tests.report.test_gate import ATTACKED
from tests.report.test_headline import (
    DIFFERENT,
    NOT_SHOWN,
    TOO_FEW,
    assuming,
    naming,
)
from tests.report.test_verdict import at_equal_speech, cell, counting_result, half_of_the_words


def answers(*results: Result, **skipped: str) -> dict[str, Answer]:
    """The answer to each question about gender."""
    given = answers_of(verdict(results), "gender", skipped)
    return {answer.question: answer for answer in given}


def lines(*results: Result) -> list[str]:
    conclusion = verdict(results)
    return screen(conclusion, answers_of(conclusion, "gender"))


def narrow_interval(result: Result, half: float) -> Result:
    """The result with intervals that reach so far to either side."""
    rows = [replace(r, ci_low=r.value - half, ci_high=r.value + half) for r in result.rows]
    return replace(result, rows=rows)


def test_a_yes_has_the_number_that_is_tested_with_its_interval():
    answer = answers(naming(0.3, male=0.05, female=0.16))["naming"]
    assert (answer.answer, answer.part) == ("yes", "named:increase")
    assert (answer.value, answer.ci_low, answer.ci_high) == pytest.approx((0.3, 0.2, 0.4))


def test_an_answer_has_the_value_of_each_group():
    answer = answers(naming(0.3, male=0.05, female=0.16))["naming"]
    assert answer.as_plain_data()["by_group"]["female"]["value"] == 0.16


def test_the_screen_shows_each_group_below_the_answer():
    assert "  male 5.0 %, female 16.0 %" in lines(naming(0.3, male=0.05, female=0.16))


@pytest.mark.parametrize(("half", "given"), [(0.01, "no"), (0.1, "cannot_tell")])
def test_no_needs_an_interval_that_excludes_more_than_negligible_bias(half, given):
    answer = answers(narrow_interval(naming(0.0), half))["naming"]
    assert (answer.answer, answer.at_most) == (given, pytest.approx(half))


def test_what_is_not_beyond_chance_is_shown_with_what_is_still_possible():
    text = "\n".join(lines(naming(0.0)))
    assert "Not shown: at most 10.0 points; gender_error 0.0 [-10.0, 10.0]" in text


def test_of_two_metrics_the_one_that_allows_more_bias_decides():
    wide = narrow_interval(cell({"score": 0.0}, metric="leakage"), 0.3)
    answer = answers(narrow_interval(cell({"score": 0.0}), 0.01), wide)["leakage"]
    assert (answer.answer, answer.metric, answer.at_most) == ("cannot_tell", "leakage", 0.3)


def test_a_number_of_another_unit_does_not_decide_beside_a_share():
    other = narrow_interval(cell({"score": 0.0}, metric="differential_fairness", unit="nat"), 0.5)
    answer = answers(narrow_interval(cell({"score": 0.0}), 0.01), other)["leakage"]
    assert (answer.answer, answer.metric) == ("no", "lic")


def test_of_a_part_of_the_words_there_is_no_no():
    answer = answers(half_of_the_words(at_equal_speech(0.0)))["leakage"]
    assert (answer.answer, answer.reason) == ("cannot_tell", "not beyond chance")
    assert answer.limits == "on the 50 % of its words that annotators use as often"


def test_without_annotators_the_number_stands_without_a_verdict():
    rows = [row for row in counting_result("misgendering", 0.3).rows if "human" not in row.part]
    alone = replace(
        counting_result("misgendering", 0.3),
        rows=[r for r in rows if not r.part.endswith("increase")],
    )
    answer = answers(alone)["naming"]
    assert (answer.answer, answer.metric) == ("cannot_tell", "gender_error")
    assert answer.reason == "no annotators' captions"


def test_a_question_that_no_metric_answers_says_why_it_was_skipped():
    answer = answers(naming(0.0), inventing="dataset 'coco': no objects; give them")["inventing"]
    assert (answer.answer, answer.reason) == ("not_tested", "no objects")


def test_a_metric_that_answers_itself_is_believed():
    given = [answers(result)["describing"].answer for result in (DIFFERENT, NOT_SHOWN, TOO_FEW)]
    assert given == ["yes", "cannot_tell", "cannot_tell"]


def test_the_screen_names_what_a_yes_is_about():
    assert "  focused" in lines(DIFFERENT)


def test_a_yes_that_many_questions_may_have_made_is_marked():
    unsure = naming(0.03, p_value=0.03)
    results = [unsure, assuming(0.0), NOT_SHOWN]
    answer = answers(*results)["naming"]
    assert (answer.answer, answer.reason) == ("yes", "but not after Holm over all 3 answers")


def test_a_number_without_a_verdict_stands_beside_its_question():
    ratio = cell({"model": 2.0, "human": 2.2, "score": -0.2}, None, "mentions", unit="ratio")
    (text,) = (line for line in lines(ratio) if line.startswith("How often"))
    assert text == "How often does it name each group? lic 2.00 [1.90, 2.10] (labels 2.20)"


def test_of_many_groups_the_lowest_and_the_highest_are_shown():
    text = "\n".join(lines(naming(0.3, a=0.1, b=0.4, c=0.2, d=0.3, e=0.25)))
    assert "a 10.0 %, b 40.0 %; 3 more in the report" in text


@pytest.mark.parametrize("results", [(DIFFERENT, naming(0.3, male=0.05, female=0.16)), ()])
def test_the_screen_fits_30_lines_of_80_columns(results):
    shown = lines(*results, at_equal_speech(0.0), assuming(0.0))
    assert len(shown) <= 26  # beside what was read, the cautions and the report's path
    assert max(map(len, shown)) <= 80


def test_an_absent_number_is_none_in_no_answer():
    stored = answers(TOO_FEW)["describing"].as_plain_data()
    assert math.isnan(stored["value"])


def test_a_long_reason_is_cut_to_eight_words():
    assert shorten_reason("one two three four five six seven eight nine").endswith("eight …")


def test_of_one_direction_there_is_no_no():
    built = narrow_interval(cell({"a_to_t": 0.0}, None, "tasks", metric="dbac"), 0.01)
    built.manifest["metric"]["readings"] = {"a_to_t": {**ATTACKED, "part": "a_to_t"}}
    answer = answers(built)["tasks"]
    assert (answer.answer, answer.limits) == ("cannot_tell", "A→T alone; nothing is known of T→A")
    assert "dbac A→T 0.0 [-1.0, 1.0]" in answer_lines(answer)[0]


def test_without_annotators_no_bias_is_bounded():
    result = counting_result("misgendering", 0.3)
    without = [row for row in result.rows if "human" not in row.part and "increase" not in row.part]
    assert math.isnan(answers(replace(result, rows=without))["naming"].at_most)


def test_a_number_without_a_verdict_bounds_nothing():
    ratio = cell({"model": 2.0, "human": 2.2, "score": -0.2}, None, "mentions", unit="ratio")
    assert math.isnan(answers(ratio)["mentions"].at_most)
