"""The answers that results of one captioner give: made-up results."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from bias_pipeline.analysis.doubts import LIMITS, Limits
from bias_pipeline.analysis.verdict import verdict
from bias_pipeline.report.verdict import sentences
from bias_pipeline.results.store import Result
from tests.analysis.test_gate import ALIKE, ATTACKED, COUNTED
from tests.report.test_tables import row

LIC = {"captioner": "a", "metric": "lic", "attribute": "gender", "neutral_rate": 0.3}


def cell(
    values: Mapping[str, float],
    reading: Mapping[str, object] | None = ATTACKED,
    question: str = "leakage",
    low: float = -1.0,
    speech: Mapping[str, float] = ALIKE,
    **more: object,
) -> Result:
    """A result with the given parts, each with an interval of 0.1 to either side."""
    rows = [
        row(**{**LIC, **more, "part": part, "value": v, "ci_low": v - 0.1, "ci_high": v + 0.1})
        for part, v in values.items()
    ]
    manifest = {
        "metric": {
            "direction": "lower is fairer",
            "question": question,
            "neutral": {"score": 0.0},
            "range": {"score": [low, 1.0]},
            "readings": {"score": dict(reading)} if reading else {},
        },
        "speech": {"model": dict(speech), "human": ALIKE},
    }
    return Result("x", rows, manifest)


def answer(result: Result, limits: Limits = LIMITS) -> str:
    question = str(result.manifest["metric"]["question"])  # type: ignore[index]
    return verdict([result], limits).answer(question, "gender")


@pytest.mark.parametrize(("value", "told"), [(0.3, "more"), (0.05, "none"), (-0.3, "none")])
def test_what_lies_above_neutral_beyond_chance_is_more(value: float, told: str) -> None:
    assert answer(cell({"score": value})) == told


def test_a_headline_that_follows_how_much_is_said_answers_nothing() -> None:
    assert answer(cell({"score": 0.3}, reading=None)) == "unknown"


def test_who_speaks_unlike_people_is_not_judged_by_attackers() -> None:
    assert answer(cell({"score": 0.3}, speech={**ALIKE, "words": 8.0})) == "unknown"


@pytest.mark.parametrize(("coverage", "told"), [(0.02, "unknown"), (0.6, "more")])
def test_below_a_coverage_there_is_no_verdict(coverage: float, told: str) -> None:
    assert answer(cell({"score": 0.3}, coverage=coverage)) == told


def test_the_coverage_is_a_parameter() -> None:
    assert answer(cell({"score": 0.3}, coverage=0.02), Limits(coverage=0.01)) == "more"


@pytest.mark.parametrize(("increase", "told"), [(0.3, "more"), (0.0, "none")])
def test_what_people_do_too_is_no_finding(increase: float, told: str) -> None:
    values = {"score": 0.4, "named": 0.5, "named:human": 0.5 - increase, "named:increase": increase}
    assert answer(cell(values, COUNTED, "misgendering", low=0.0)) == told


def test_without_people_an_error_is_held_against_nothing() -> None:
    found = cell({"score": 0.4, "named": 0.5}, COUNTED, "misgendering", low=0.0)
    assert answer(found) == "unknown"


def test_the_reading_answers_and_not_the_headline() -> None:
    found = cell({"score": 0.9, "score:shared": 0.0}, {**ATTACKED, "part": "score:shared"})
    assert answer(found) == "none"


def test_p_is_adjusted_among_those_that_answer_one_question() -> None:
    one = cell({"score": 0.11})
    assert answer(one) == "more"
    assert verdict([one, one, one]).answer("leakage", "gender") == "none"


def test_other_attributes_are_answered_apart() -> None:
    found = verdict([cell({"score": 0.3}), cell({"score": 0.0}, attribute="race")])
    assert [found.answer("leakage", name) for name in found.attributes] == ["more", "none"]


def test_questions_stand_in_their_order() -> None:
    found = verdict([cell({"score": 0.3}, question="tasks"), cell({"score": 0.3})])
    assert [own.question for own in found.findings] == ["leakage", "tasks"]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (cell({"score": 0.3}), "Does it give the group away? Yes, beyond chance: lic (gender 30.0"),
        (
            cell({"score": 0.0}),
            "lic (gender 0.0 [-10.0, 10.0]; up to 10.0 points more is possible)",
        ),
        (
            cell({"score": 0.3}, reading=None),
            "Nothing is concluded from lic (gender 30.0): moved by how much it says.",
        ),
        (
            cell({"score": 0.3}, coverage=0.02),
            "it rests on 2% of the labelled images, less than 50%",
        ),
        (
            cell({"score": 0.3, "model": 2.5, "human": 2.0}, None, "mentions", unit="ratio"),
            "How often does it name each group? lic (gender 2.50 in captions and 2.00 in labels).",
        ),
    ],
)
def test_a_verdict_is_told_in_sentences(result: Result, told: str) -> None:
    assert told in "\n".join(sentences(verdict([result])))


def test_what_would_make_it_wrong_is_told_of_what_is_found() -> None:
    assert "Wrong if captions differ" in sentences(verdict([cell({"score": 0.3})]))[0]


def test_a_number_without_a_value_is_no_finding() -> None:
    assert answer(cell({"score": math.nan})) == "unknown"
