"""The answers that results of one captioner give: made-up results."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from bias_pipeline.report.answer_texts import notes, screen
from bias_pipeline.report.answers import answers_of
from bias_pipeline.report.conclusion_checks import LIMITS, Limits
from bias_pipeline.report.verdict import verdict
from bias_pipeline.results.rows import Result
from tests.report.test_gate import ALIKE, ATTACKED, COUNTED
from tests.report.test_tables import row

LIC = {
    "captioner": "a",
    "metric": "lic",
    "attribute": "gender",
    "neutral_rate": 0.3,
    "p_value": math.nan,
}


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


def conclusion_text(*results: Result) -> str:
    """The screen on gender with its notes, in one line."""
    conclusion = verdict(results)
    answers = answers_of(conclusion, "gender")
    return " ".join(" ".join([*screen(conclusion, answers), *notes(conclusion, answers)]).split())


def answer(result: Result, limits: Limits = LIMITS) -> str:
    question = str(result.manifest["metric"]["question"])
    return verdict([result], limits).answer(question, "gender")


ASSUMED = {"part": "model", "follows": [], "named": False}
MATCHED = {**ATTACKED, "follows": ["words", "vocabulary"], "matched": True}


def at_equal_speech(value: float, half: float = 0.01, reach: float = 0.99) -> Result:
    """LIC at equal style of a captioner who speaks unlike people."""
    result = cell({"score": value, "matched:reach": reach}, MATCHED, speech={**ALIKE, "words": 8.0})
    rows = [replace(row, ci_low=row.value - half, ci_high=row.value + half) for row in result.rows]
    return replace(result, rows=rows)


def with_beyond(value: float, score: float = 0.03, half: float = 0.01) -> Result:
    """LIC at equal style with what is beyond an annotator at the captioner's length."""
    result = at_equal_speech(score)
    (first, *_) = result.rows
    beyond = replace(
        first, part="matched:beyond", value=value, ci_low=value - half, ci_high=value + half
    )
    alike = replace(first, part="matched:alike", value=score - value)
    return replace(result, rows=[*result.rows, beyond, alike])


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (with_beyond(0.002), "no"),
        (with_beyond(0.03), "more"),
        (with_beyond(0.015, half=0.02), "none"),
        (with_beyond(0.03, score=0.0), "more"),
        (with_beyond(math.nan), "more"),
        (with_beyond(math.nan, score=0.0), "no"),
    ],
    ids=[
        "an annotator scores as much", "more than an annotator", "within chance",
        "less than people, an annotator even less", "no annotator at its length: the score",
        "the score, no more than people's",
    ],
)  # fmt: skip
def test_at_equal_speech_what_is_beyond_an_annotator_at_its_length_decides(result, expected):
    assert answer(result) == expected


def test_the_score_at_equal_speech_stands_beside_that_of_annotators_of_its_length():
    text = conclusion_text(with_beyond(0.03, score=0.05))
    assert "lic 3.0 points [2.0, 4.0] (annotators 2.0)" in text


def test_without_the_part_the_score_at_equal_speech_decides():
    assert answer(at_equal_speech(0.03)) == "more"


@pytest.mark.parametrize(
    ("result", "words", "expected"),
    [
        (with_beyond(0.002), 20.5, "no"),
        (with_beyond(0.002), 21.5, "unknown"),
        (with_beyond(math.nan, score=0.0), 20.5, "unknown"),
    ],
)
def test_an_annotator_at_its_length_allows_twice_as_many_words_more_or_less(
    result, words, expected
):
    """Two annotators joined write twice as many, which the draw of images moves."""
    speech = {"model": {**ALIKE, "words": words}, "human": ALIKE}
    assert answer(replace(result, manifest={**result.manifest, "speech": speech})) == expected


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (cell({"score": 0.3}), "more"),
        (cell({"score": 0.05}), "none"),
        (cell({"score": -0.3}), "none"),
        (cell({"score": math.nan}), "unknown"),
        (cell({"score": 0.3}, reading=None), "unknown"),
        (cell({"score": 0.3}, speech={**ALIKE, "words": 8.0}), "unknown"),
        (cell({"score": 0.3}, coverage=0.02), "unknown"),
        (cell({"score": 0.3}, coverage=0.6), "more"),
        (cell({"score": 0.9, "score:shared": 0.0}, {**ATTACKED, "part": "score:shared"}), "none"),
        (cell({"score": 0.4, "named": 0.5}, COUNTED, "misgendering", low=0.0), "unknown"),
    ],
    ids=[
        "above the no-bias value beyond chance", "above within chance", "below", "without a value",
        "a headline that follows how much is said", "who speaks unlike people",
        "below the coverage", "above the coverage", "the reading, not the headline",
        "an error without people",
    ],
)  # fmt: skip
def test_an_answer(result, message):
    assert answer(result) == message


@pytest.mark.parametrize("reading", [ATTACKED, None])
def test_a_number_without_a_value_is_not_used_for_that_reason(reading):
    (finding,) = verdict([cell({"score": math.nan}, reading)]).findings
    assert finding.doubt == "it has no value"


def test_people_who_hardly_name_a_group_are_the_reason_where_they_are():
    values = {"score": 0.4, "named": 0.5, "named:human": math.nan, "named:increase": math.nan}
    (finding,) = verdict([cell(values, COUNTED, "misgendering", low=0.0)]).findings
    assert finding.doubt == "human captions name a group too rarely"


def test_the_coverage_is_a_parameter():
    assert answer(cell({"score": 0.3}, coverage=0.02), Limits(coverage=0.01)) == "more"


@pytest.mark.parametrize(("increase", "message"), [(0.3, "more"), (0.0, "none")])
def test_what_people_do_too_is_no_finding(increase, message):
    values = {"score": 0.4, "named": 0.5, "named:human": 0.5 - increase, "named:increase": increase}
    assert answer(cell(values, COUNTED, "misgendering", low=0.0)) == message


def test_p_is_adjusted_among_those_that_answer_one_question():
    one = cell({"score": 0.11})
    assert answer(one) == "more"
    assert verdict([one, one, one]).answer("leakage", "gender") == "none"


def test_the_p_that_is_adjusted_is_that_of_the_row():
    """Student's with few seeds, or of an interval shifted by noise: here the normal one is 0.02."""
    one = cell({"score": 0.12}, p_value=0.04)
    other = cell({"score": 0.0}, p_value=1.0)
    assert [finding.p_value for finding in verdict([one, other]).findings] == [0.08, 1.0]


def test_an_interval_above_neutral_without_a_finding_says_why():
    text = conclusion_text(
        *(cell({"score": 0.11}, metric=name) for name in ("lic", "dpa", "leakage"))
    )
    assert "Not shown: at most 21.0 points; lic 11.0 [1.0, 21.0]" in text
    assert "Further numbers: dpa 11.0 [1.0, 21.0], p 0.093; leakage" in text


def test_other_attributes_are_answered_apart():
    conclusion = verdict([cell({"score": 0.3}), cell({"score": 0.0}, attribute="race")])
    answers = [conclusion.answer("leakage", name) for name in conclusion.attributes]
    assert answers == ["more", "none"]


def test_questions_stand_in_their_order():
    conclusion = verdict([cell({"score": 0.3}, question="tasks"), cell({"score": 0.3})])
    assert [finding.question for finding in conclusion.findings] == ["leakage", "tasks"]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (cell({"score": 0.3}), "Yes: lic 30.0 points [20.0, 40.0]"),
        (cell({"score": 0.3}), "The Yes is wrong if attackers use a harmless habit"),
        (cell({"score": 0.0}), "Not shown: at most 10.0 points; lic 0.0 [-10.0, 10.0]"),
        (
            cell({"score": 0.3}, reading=None),
            "Not used: lic 30.0: it changes with longer or shorter captions, even without bias.",
        ),
        (cell({"score": 0.3}, coverage=0.02), "It covers only 2% of its images; 50% are needed"),
        (
            cell({"score": 0.3, "model": 2.5, "human": 2.0}, None, "mentions", unit="ratio"),
            "How often does it name each group? lic 2.50 [2.40, 2.60] (labels 2.00)",
        ),
        (
            cell({"score": 0.3, "model": 0.7, "human": 0.4}, ASSUMED, "assuming"),
            "Does it assume gender that nobody can see? Yes: lic 30.0 points [20.0, 40.0] "
            "(annotators 40.0)",
        ),
        (
            cell({"score": math.nan, "model": 0.7}, ASSUMED, "assuming"),
            "To compare it with annotators, give human captions",
        ),
        (
            at_equal_speech(0.3, reach=0.9),
            "nnotators use only 90% of its words as often; 95% are needed",
        ),
        (
            at_equal_speech(0.3, reach=0.9499),
            "nnotators use only 94% of its words as often; 95% are needed",
        ),
        (at_equal_speech(0.0, 0.05), "at most 5.0 points"),
    ],
)
def test_the_answer_and_its_notes_are_told_in_words(result, message):
    assert message in conclusion_text(result)


def test_several_numbers_that_are_not_used_are_named_in_the_plural():
    one, other = (cell({"score": 0.3}, reading=None, metric=name) for name in ("lic", "dpa"))
    assert (
        "Not used: lic 30.0; dpa 30.0: they change with longer or shorter captions, even without "
        "bias." in conclusion_text(one, other)
    )


def test_each_reason_not_to_use_numbers_is_a_line():
    results = [cell({"score": 0.3}, reading=None), cell({"score": 0.3}, coverage=0.02)]
    assert conclusion_text(*results).count("Not used") == 2


@pytest.mark.parametrize(
    ("question", "needs"), [("leakage", "human captions"), ("tasks", "the objects")]
)
def test_a_question_that_no_run_tests_says_what_it_needs(question, needs):
    other = "tasks" if question == "leakage" else "leakage"
    assert f"It needs {needs}" in conclusion_text(cell({"score": 0.3}, question=other))


@pytest.mark.parametrize(("increase", "message"), [(0.3, "more"), (0.0, "none"), (-0.3, "none")])
def test_what_people_assume_too_is_no_finding(increase, message):
    values = {"score": increase, "model": 0.4 + increase, "human": 0.4}
    assert answer(cell(values, ASSUMED, "assuming")) == message


@pytest.mark.parametrize(
    ("value", "half", "reach", "limits", "message"),
    [
        (0.05, 0.01, 0.99, LIMITS, "more"),
        (0.0, 0.01, 0.99, LIMITS, "no"),
        (-0.05, 0.01, 0.99, LIMITS, "no"),
        (0.0, 0.05, 0.99, LIMITS, "none"),
        # without a margin, no needs an interval that is not above people
        (-0.05, 0.04, 0.99, Limits(negligible=0.0), "no"),
        (0.0, 0.04, 0.99, Limits(negligible=0.05), "no"),
        (0.3, 0.01, 0.9, LIMITS, "unknown"),  # beyond the reach of people
        (0.3, 0.01, 0.9, Limits(reach=0.8), "more"),
    ],
)
def test_at_equal_speech_there_is_an_answer(value, half, reach, limits, message):
    assert answer(at_equal_speech(value, half, reach), limits) == message


def first_sentence(result: Result) -> Result:
    return replace(result, manifest={**result.manifest, "text": {"unit": "sentence"}})


def with_retained(share: float) -> Callable[[Result], Result]:
    """As if an alignment had left this share of the captioner's words."""

    def leave_words(result: Result) -> Result:
        part = replace(result.rows[0], part="matched:retained", value=share)
        return replace(result, rows=[*result.rows, part])

    return leave_words


most_of_the_words, half_of_the_words = with_retained(0.92), with_retained(0.5)


@pytest.mark.parametrize("partly", [first_sentence, most_of_the_words])
@pytest.mark.parametrize(("value", "message"), [(0.1, "more"), (0.0, "none"), (-0.1, "none")])
def test_a_part_of_the_captions_shows_bias_but_cannot_rule_it_out(partly, value, message):
    assert answer(partly(at_equal_speech(value))) == message


@pytest.mark.parametrize("value", [0.1, 0.0, -0.1])
def test_half_of_the_words_say_nothing_of_links(value):
    result = half_of_the_words(at_equal_speech(value))
    metric = {**result.manifest["metric"], "question": "tasks"}
    result = replace(result, manifest={**result.manifest, "metric": metric})
    assert answer(result) == "unknown"
    reason = "50% of its words were removed, since annotators do not use them as often"
    assert reason in conclusion_text(result)


def long_captions(result: Result, times: float = 2.1) -> Result:
    speech = {"model": {**ALIKE, "words": times * ALIKE["words"]}, "human": ALIKE}
    return replace(result, manifest={**result.manifest, "speech": speech})


def counting_result(question: str, increase: float, **more: object) -> Result:
    """A count that no trait of captions moves, above or below people's."""
    values = {"score": 0.4, "named": 0.5, "named:human": 0.5 - increase, "named:increase": increase}
    return cell(values, COUNTED, question, low=0.0, metric="gender_error", **more)


@pytest.mark.parametrize("increase", [0.3, 0.0, -0.3])
def test_captions_of_more_than_twice_the_length_tell_nothing_of_what_is_assumed(increase):
    result = long_captions(counting_result("assuming", increase))
    assert answer(result) == "unknown"
    assert "Cannot tell: it writes " in conclusion_text(result)
    assert "more than 2 times as many cannot be compared" in conclusion_text(result)
    assert answer(long_captions(counting_result("assuming", 0.3), 1.9)) == "more"


def test_long_captions_of_which_few_words_were_removed_give_nothing_away_for_sure():
    assert answer(with_retained(0.97)(long_captions(at_equal_speech(0.3)))) == "unknown"
    assert answer(with_retained(0.97)(at_equal_speech(0.3))) == "more"


def test_of_long_captions_a_wrong_group_is_still_told():
    assert answer(long_captions(counting_result("misgendering", 0.3))) == "more"


def test_the_quality_of_captions_of_more_than_twice_the_length_is_not_judged():
    good = cell({"score": -0.9}, None, "quality", metric="quality")
    (finding,) = verdict([long_captions(good)]).findings
    assert finding.withheld.startswith("cannot tell: it writes ")
    assert verdict([good]).findings[0].withheld == ""


def foreign(result: Result, model: float = 0.02, human: float = 0.01) -> Result:
    """As if so few captions were in the language of the word lists."""
    language = {"lists": "en", "shares": {"model": model, "human": human}}
    return replace(result, manifest={**result.manifest, "language": language})


TESTED = {
    "leakage": at_equal_speech(0.3),
    "misgendering": counting_result("misgendering", 0.3),
    "assuming": counting_result("assuming", 0.3),
    "tasks": counting_result("tasks", 0.3),
}


@pytest.mark.parametrize("question", TESTED)
@pytest.mark.parametrize("shares", [(0.02, 0.01), (1.0, 0.01), (0.49, 1.0), (0.02, math.nan)])
def test_by_lists_of_another_language_no_question_is_answered(question, shares):
    assert answer(TESTED[question]) == "more"
    result = foreign(TESTED[question], *shares)
    assert answer(result) == "unknown"
    assert "? Cannot tell: the word lists are English" in conclusion_text(result)
    assert "The word lists are English, and " in conclusion_text(result)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (1.0, math.nan)])
def test_where_half_of_the_captions_fit_the_lists_questions_are_answered(shares):
    assert answer(foreign(TESTED["leakage"], *shares)) == "more"


def test_how_often_groups_are_named_is_not_told_by_lists_of_another_language():
    ratio = cell({"model": 1.5, "score": 0.2}, None, "mentions", metric="gender_ratio")
    assert "How often does it name each group?" in conclusion_text(ratio)
    untold = "How often does it name each group? Not tested: the word lists are English"
    assert untold in conclusion_text(foreign(ratio))


def of_images(result: Result, n_images: Mapping[str, int]) -> Result:
    rows = [replace(row, n_images=n_images.get(row.part, 42)) for row in result.rows]
    return replace(result, rows=rows)


PAIRED = {"model:paired": 0.429, "human:paired": 0.286}
ASSUMES = {"model": 0.333, "human": 0.286, "score": 0.143, **PAIRED}
NAMED_PAIRED = {"named:model:paired": 0.4, "named:human:paired": 0.15}
MISNAMES = {"score": 0.1, "named": 0.3, "named:human": 0.2, "named:increase": 0.25, **NAMED_PAIRED}


def test_an_answer_quotes_the_two_numbers_that_were_compared():
    """The captioner describes images that people do not; the test is about those of both."""
    result = cell(ASSUMES, ASSUMED, "assuming", metric="assumed_group")
    result = of_images(result, {"model": 57})
    (finding,) = verdict([result]).findings
    assert (finding.row.value, finding.people) == (0.429, 0.286)
    assert finding.row.value - finding.people == pytest.approx(finding.compared.value)
    assert "assumed_group 14.3 points [4.3, 24.3] (annotators 28.6)" in conclusion_text(result)


@pytest.mark.parametrize("more", [{"named": 57}, {"named:human": 57}])
def test_an_error_among_named_groups_quotes_them_too(more):
    named = cell(MISNAMES, COUNTED, "misgendering", low=0.0, metric="gender_error")
    (finding,) = verdict([of_images(named, more)]).findings
    assert (finding.row.value, finding.people) == (0.4, 0.15)
    assert "gender_error 25.0 points [15.0, 35.0] (annotators 15.0)" in conclusion_text(
        of_images(named, more)
    )


def test_where_both_describe_the_same_images_the_plain_numbers_are_quoted():
    result = cell(ASSUMES, ASSUMED, "assuming", metric="assumed_group")
    (finding,) = verdict([of_images(result, {})]).findings
    assert finding.row.part == "model"


def test_where_there_is_a_score_at_equal_speech_it_decides():
    plain, matched = cell({"score": 0.3}, MATCHED), at_equal_speech(0.0)
    conclusion = verdict([plain, matched])
    assert conclusion.answer("leakage", "gender") == "no"
    doubts = {finding.doubt for finding in conclusion.findings}
    assert "the score at equal style is used instead" in doubts


def test_beyond_reach_a_captioner_like_people_is_judged_as_published():
    conclusion = verdict([cell({"score": 0.3}, MATCHED), at_equal_speech(0.0, reach=0.5)])
    assert conclusion.answer("leakage", "gender") == "more"


ONE_WAY = {**ATTACKED, "part": "a_to_t"}


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ({"a_to_t": 0.0}, "This answer is about A→T alone; nothing is known of T→A, which needs"),
        (
            {"a_to_t": 0.0, "t_to_a": 0.0},
            "This answer is about A→T alone; nothing is known of T→A.",
        ),
    ],
)
def test_an_answer_on_one_direction_says_so(values, known):
    built = cell(values, None, "tasks")
    built.manifest["metric"]["readings"] = {"a_to_t": ONE_WAY}
    assert known in conclusion_text(built)


def test_an_answer_on_both_directions_has_no_such_sentence():
    built = cell({"a_to_t": 0.0, "t_to_a": 0.0}, None, "tasks")
    readings = {"a_to_t": ONE_WAY, "t_to_a": {**ATTACKED, "part": "t_to_a"}}
    built.manifest["metric"]["readings"] = readings
    assert "alone" not in conclusion_text(built)


# --- assumed groups: the first sentence and whole captions, at equal length ----------------------

ANY_LENGTH = {**ASSUMED, "also": ["whole:model"]}


def assuming(first: float, whole: float, words: float = 8.0) -> Result:
    """What captions of so many words, against eight of annotators, assume more than annotators."""
    values = {
        "score": first,
        "model": 0.3 + first,
        "human": 0.3,
        "whole": whole,
        "whole:model": 0.4 + whole,
        "whole:human": 0.4,
    }
    speech = {**ALIKE, "words": words}
    return cell(values, ANY_LENGTH, "assuming", speech=speech, metric="assumed_group")


@pytest.mark.parametrize(
    ("first", "whole", "message"),
    [(0.0, 0.0, "none"), (0.2, 0.0, "more"), (0.0, 0.2, "more"), (-0.2, 0.05, "none")],
)
def test_the_first_sentence_or_the_whole_caption_may_assume(first, whole, message):
    assert answer(assuming(first, whole)) == message


def test_both_are_tested_together():
    """One of two numbers at p = 0.049 is not beyond chance (Holm)."""
    first, whole = verdict([assuming(0.1004, 0.0)]).findings
    assert first.p_value == pytest.approx(0.098, abs=0.002)
    assert whole.p_value == 1


def test_captions_of_any_length_are_compared():
    long = assuming(0.2, 0.0, words=10 * ALIKE["words"])
    assert answer(long) == "more"
    assert not verdict([long]).withheld("assuming", "gender")


def test_the_evidence_says_which_number_it_is():
    text = conclusion_text(assuming(0.0, 0.2))
    assert "assumed_group 20.0 points [10.0, 30.0] (annotators 40.0)" in text
    assert "Further numbers: assumed_group (model) 0.0" in text
