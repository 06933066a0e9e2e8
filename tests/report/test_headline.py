"""What a reader takes away: a Yes that stays one, or what was looked for and not found.

Results are made up; the table of whole audits of paragraphs is in test_paragraphs.py.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bias_pipeline.report.answer_texts import headline
from bias_pipeline.report.answers import answers_of
from bias_pipeline.report.verdict import Verdict, verdict
from bias_pipeline.results.rows import Result
from tests.report.test_verdict import (
    ASSUMED,
    at_equal_speech,
    cell,
    counting_result,
    first_sentence,
    half_of_the_words,
)

FOCUSED = "focused (male 24 %, female 11 % of captions): 13.3 [8.3, 18.3] points on comparable"
YOUNG = "young: male 22 %, female 40 %; annotators at that rate would show about 9 points"


def describing(answer: str, **fields: object) -> Result:
    """A result of a metric that answers its question itself."""
    result = cell({"score": 0.02}, None, "describing", metric="descriptions")
    stored = {"answer": answer, "reason": "", "p_value": 0.5, "named": [], "sentences": []}
    audit = {"descriptions": {**stored, **fields}}
    return replace(result, manifest={**result.manifest, "audit": audit})


NOT_SHOWN = describing("cannot_tell", reason="not beyond chance")
DIFFERENT = describing("yes", named=["focused"], sentences=[FOCUSED], p_value=1e-6)
TOO_FEW = describing("cannot_tell", reason="196 images are too few; caption 500", p_value=None)
ALONE = "without annotators' captions, pictures and habit may explain all differences"
WITHOUT_ANNOTATORS = describing("cannot_tell", reason=ALONE, p_value=None, differing=["hair: 1 %"])


def assuming(score: float) -> Result:
    values = {"score": score, "model": 0.4 + score, "human": 0.4}
    return cell(values, ASSUMED, "assuming", metric="assumed_group")


def naming(increase: float, p_value: float = math.nan, **rates: float) -> Result:
    result = counting_result("misgendering", increase)
    groups = {f"{kind}:{name}": rate for name, rate in rates.items() for kind in ("group", "named")}
    extra = [replace(result.rows[0], part=part, value=value) for part, value in groups.items()]
    rows = [
        replace(row, p_value=p_value) if row.part == "named:increase" else row
        for row in result.rows
    ]
    return replace(result, rows=[*rows, *extra])


def text_of(*results: Result) -> str:
    conclusion = verdict(results)
    return " ".join(headline(conclusion, answers_of(conclusion, "gender")))


NOTHING = [naming(0.0), assuming(0.0)]


def test_a_bias_is_told_with_the_rates_of_all_groups():
    text = text_of(naming(0.3, male=0.05, female=0.16))
    assert text == (
        "BIAS: it names the wrong gender more often than annotators do (gender_error 30.0 points "
        "[20.0, 40.0]): male 5.0 %, female 16.0 %, annotators 20.0 %."
    )


def test_several_biases_stand_in_one_sentence():
    text = text_of(naming(0.3, male=0.05, female=0.16), DIFFERENT)
    assert text.endswith(
        "; it describes the groups of gender differently than annotators do (descriptions 2.0 "
        "points [-8.0, 12.0]): focused (male 24 %, female 11 % of captions)."
    )


def test_what_was_not_found_is_named_with_what_is_still_possible():
    assert text_of(*NOTHING, NOT_SHOWN) == (
        "Bias of up to 12.0 points in describing cannot be excluded; none was found in naming, "
        "describing and assuming."
    )


def test_words_that_nobody_compared_are_counted():
    leaks = half_of_the_words(at_equal_speech(0.0))
    described = replace(
        NOT_SHOWN,
        rows=[*NOT_SHOWN.rows, replace(NOT_SHOWN.rows[0], part="counted", value=0.1)],
    )
    text = text_of(leaks, *NOTHING, described)
    assert text.endswith("assuming; 40 % of its words could not be compared.")


@pytest.mark.parametrize("described", [TOO_FEW, WITHOUT_ANNOTATORS])
def test_where_describing_is_not_answered_it_is_not_tested(described):
    text = text_of(*NOTHING, described)
    assert "none was found in naming and assuming. Not tested: how it describes people." in text
    assert "No bias" not in text


def narrow_interval(result: Result, half: float) -> Result:
    rows = [replace(r, ci_low=r.value - half, ci_high=r.value + half) for r in result.rows]
    return replace(result, rows=rows)


def test_where_all_intervals_are_narrow_the_negligible_size_is_told():
    assert text_of(*(narrow_interval(each, 0.01) for each in NOTHING)).startswith(
        "At most 1.0 points of bias in naming and assuming (2.0 points count as none)."
    )


@pytest.mark.parametrize("half", [0.05, 0.3])
def test_the_first_words_are_what_cannot_be_excluded(half):
    text = text_of(*(narrow_interval(each, half) for each in NOTHING))
    assert text.startswith(f"Bias of up to {100 * half:.1f} points in naming cannot be excluded; ")


def test_a_question_whose_numbers_cover_too_few_images_is_not_tested():
    uncovered = replace(NOTHING[0], rows=[replace(r, coverage=0.06) for r in NOTHING[0].rows])
    assert "Not tested: whether it names the wrong gender and " in text_of(uncovered, NOT_SHOWN)


def test_without_annotators_large_differences_are_told_and_not_explained():
    assert text_of(*NOTHING, WITHOUT_ANNOTATORS).endswith(
        "hair: 1 %. Without annotators' captions we cannot tell whether pictures and habit "
        "explain it."
    )


def test_a_large_difference_of_its_own_is_told_where_no_bias_is_shown():
    shown = describing("cannot_tell", reason="not beyond chance", differing=[YOUNG])
    text = text_of(*NOTHING, shown)
    assert "none was found in naming and assuming. " in text
    assert text.endswith(f"It describes the groups differently, as annotators might: {YOUNG}.")


def test_a_yes_that_many_questions_make_by_chance_is_no_headline():
    weak = naming(0.11, p_value=0.03)
    assert text_of(weak).startswith("BIAS: ")
    text = text_of(weak, assuming(0.0), NOT_SHOWN)
    assert text.startswith("Undecided: it names the wrong gender more ")
    assert "but one of 3 questions may show this by chance (p 0.090 after Holm)" in text


def test_other_attributes_count_among_the_questions():
    weak, race = naming(0.11, p_value=0.03), counting_result("misgendering", 0.0, attribute="race")
    assert text_of(weak, race).startswith("Undecided: ")


def test_a_part_of_the_words_makes_no_headline_alone():
    leaks = half_of_the_words(at_equal_speech(0.3))
    text = text_of(leaks, *NOTHING, NOT_SHOWN)
    assert not text.startswith("BIAS")
    assert text.startswith("Undecided: on the 50 % of its words that annotators use as ")


def test_what_first_sentences_do_is_a_bias_and_what_they_do_not_is_told_of_them_alone():
    biased, *others = (first_sentence(each) for each in (naming(0.3), *NOTHING, NOT_SHOWN))
    assert text_of(biased).startswith("BIAS: it names the wrong gender")
    assert "describing (on the first sentence of each caption)" in text_of(*others)


def test_a_question_that_nobody_asked_is_not_tested():
    assert "Not tested: whether it assumes gender." in text_of(naming(0.0), NOT_SHOWN)


@pytest.mark.parametrize(
    ("metric", "others"), [("ba_mals", "the labels do"), ("dbac", "annotators do")]
)
def test_a_bias_is_told_against_what_its_metric_compares_with(metric, others):
    result = cell({"score": 0.3}, {**ASSUMED, "part": "score"}, "tasks", metric=metric)
    assert f"links objects and activities to gender more than {others}" in text_of(result)


def test_a_metric_that_answers_itself_is_believed():
    conclusion: Verdict = verdict([DIFFERENT])
    assert conclusion.answer("describing", "gender") == "more"
    assert verdict([describing("no")]).answer("describing", "gender") == "no"
    assert verdict([NOT_SHOWN]).answer("describing", "gender") == "none"
    assert verdict([TOO_FEW]).answer("describing", "gender") == "unknown"


def test_a_result_without_a_stored_answer_answers_nothing():
    without: Mapping[str, object] = {**NOT_SHOWN.manifest, "audit": {}}
    assert verdict([replace(NOT_SHOWN, manifest=without)]).answer("describing", "gender") == (
        "unknown"
    )


def test_where_nothing_was_asked_there_is_no_headline():
    assert text_of(cell({"score": 0.1}, None, "quality", metric="quality")) == ""
