"""What decides between two captioners, and what does not: made-up results."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.report.conclusion_checks import LIMITS, Limits
from bias_pipeline.report.gate import Comparison, Decision, check_margin, compare_results, decisions
from bias_pipeline.results.rows import Result
from bias_pipeline.run.compose import cell as composed
from bias_pipeline.stats.bootstrap import Draws
from tests.report.test_compare import draw
from tests.report.test_tables import row

ALIKE = {"words": 10.0, "vocabulary": 100.0, "neutral": 0.3}
ATTACKED = {"part": "score", "follows": ["words", "vocabulary"], "named": False}
COUNTED = {"part": "named", "follows": [], "named": True}


def cell(
    captioner: str,
    value: float,
    reading: Mapping[str, object] | None = ATTACKED,
    speech: Mapping[str, float] = ALIKE,
    *,
    direction: str = "lower is fairer",
    captioned: float = 1.0,
    blanks: float = 0.0,
    attacked: bool = False,
    **more: object,
) -> Result:
    """A result of which the reading's part is ``value`` and the headline is always 0.1."""
    part = str(reading["part"]) if reading else "score"
    fields = {"captioner": captioner, "metric": "lic", "neutral_rate": speech["neutral"], **more}
    headline = row(**{**fields, "part": "score", "value": 0.1})
    rows = [headline, row(**{**fields, "part": part, "value": value})] if part != "score" else []
    manifest = {
        "metric": {
            "direction": direction,
            "question": "leakage",
            "readings": {"score": dict(reading)} if reading else {},
        },
        "speech": {"model": dict(speech), "human": ALIKE},
        "corpus": {"captioned": captioned, "blank_share": {"model": blanks}},
        "attackers": {"probe": "convex"} if attacked else {},
    }
    return Result(captioner, rows or [row(**{**fields, "value": value})], manifest)


def decision_between(
    one: Result, two: Result, margin: float | None = None, limits: Limits = LIMITS
) -> Decision:
    draws = {r.run_id: {r.rows[-1].part: draw(r.rows[-1].value)} for r in (one, two)}
    (decision,) = decisions([one, two], draws, margin=margin, limits=limits)
    return decision


def rare_decision(wrong: tuple[int, int], n: int, margin: float | None = None) -> Decision:
    """Two captioners who are wrong so many times each, on other images of n."""
    pair = [cell(name, k / n, COUNTED) for name, k in zip("ab", wrong, strict=True)]
    draws = {}
    for result, k, first in zip(pair, wrong, (0, wrong[0]), strict=True):
        events = np.zeros(n)
        events[first : first + k] = 1
        weights = np.random.default_rng(0).poisson(1.0, (400, n))
        resampled = (weights @ events / weights.sum(axis=1))[:, None]
        counted = Draws(np.array([k / n]), resampled, trained=False, trials=float(n))
        draws[result.run_id] = {"named": counted}
    (decision,) = decisions(pair, draws, margin=margin)
    return decision


def better(captioner: str, value: float) -> Result:
    return cell(captioner, value, direction="higher is better")


SILENT = {**ALIKE, "neutral": 0.9}
WORST = cell("a", 0.5)


@pytest.mark.parametrize(
    ("one", "other", "winner", "message"),
    [
        (cell("a", 0.1), cell("b", 0.5), "first", "lic: a is fairer than b (difference -"),
        (cell("a", 0.5), cell("b", 0.1), "other", "lic: a is less fair than b (difference +"),
        (cell("a", 0.5), cell("b", 0.5), "", "lic: no significant difference between a and b"),
        (better("a", 2.0), better("b", 1.0), "first", "lic: a is better than b (difference +9"),
        (better("a", 1.0), better("b", 2.0), "other", "lic: a is worse than b"),
        (cell("a", 0.5, n_images=900), cell("b", 0.1, n_images=450), "other", "lic: a is less"),
        (cell("a", 0.5, speech=SILENT), cell("b", 0.1), "other", "lic: a is less fair"),
        # the headlines are equal
        (cell("a", 0.5, COUNTED), cell("b", 0.1, COUNTED), "other", "lic (by named): a is less"),
    ],
    ids=[
        "fairer", "less fair", "alike", "better", "worse", "counts of fewer images",
        "a silent loser", "the reading, not the headline",
    ],
)  # fmt: skip
def test_who_wins(one, other, winner, message):
    decision = decision_between(one, other)
    assert decision.winner == winner
    assert decision.sentence().startswith(message)


@pytest.mark.parametrize(
    ("one", "other", "doubt"),
    [
        (WORST, cell("b", 0.1, speech={**ALIKE, "words": 8.0}), "words a caption"),
        (WORST, cell("b", 0.1, speech={**ALIKE, "vocabulary": 70.0}), "vocabulary"),
        (WORST, cell("b", 0.1, speech=SILENT), "names no group in 90%"),
        (
            WORST,
            cell("b", 0.1, captioned=0.7),
            "of 100.0% of the images to score and b of 70.0%",
        ),
        (WORST, cell("b", 0.1, blanks=0.2), "20% of the captions of b are blank"),
        (WORST, cell("b", 0.1, coverage=0.02), "it covers only 2% of its images; 50% are needed"),
        (WORST, cell("b", math.nan), "b: it has no value"),
        (cell("a", 0.5, None), cell("b", math.nan, None), "): b: it has no value"),
        (
            cell("a", 0.5, attacked=True, n_images=900),
            cell("b", 0.5, attacked=True, n_images=450),
            "a was scored on 900 images and b on 450",
        ),
        (cell("a", 0.5, None), cell("b", 0.1, None), "changes with longer or shorter captions"),
        (
            cell("a", 0.5, COUNTED, {**ALIKE, "neutral": 0.97}),
            cell("b", 0.1, COUNTED, {**ALIKE, "neutral": 0.97}),
            "3% of the captions name a group",
        ),
    ],
)
def test_who_speaks_or_covers_otherwise_wins_nothing(one, other, doubt):
    decision = decision_between(one, other)
    assert (decision.winner, doubt in decision.sentence()) == ("", True)


def test_nothing_wrong_on_either_side_of_few_images_is_no_difference_that_was_ruled_out():
    decision = rare_decision((0, 0), 30)
    assert (decision.outcome, decision.difference.p_value) == ("passed", 1.0)
    assert "this test usually misses differences below 1" in decision.sentence()
    assert " points (difference" in decision.sentence()


def test_equal_captioners_have_no_smallest_difference():
    assert "usually misses" not in decision_between(cell("a", 0.1), cell("b", 0.1)).sentence()


@pytest.mark.parametrize(
    ("wrong", "n", "outcome", "sentence"),
    [
        ((0, 0), 30, "undecided", "it is not clear whether a is less fair than b by more than"),
        ((0, 0), 3000, "passed", "a is not less fair than b by more than 1 point"),
        ((300, 0), 3000, "worse", "a is less fair than b by more than 1 point"),
        ((40, 0), 3000, "undecided", "it is not clear"),
        ((15, 0), 3000, "passed", "not less fair"),
    ],
)
def test_with_a_margin_the_whole_interval_decides(wrong, n, outcome, sentence):
    decision = rare_decision(wrong, n, margin=0.01)
    assert (decision.outcome, sentence in decision.sentence()) == (outcome, True), (
        decision.sentence()
    )


def test_a_margin_that_every_difference_is_below_is_refused():
    one, two = cell("a", 0.5), cell("b", 0.1)
    for result in (one, two):
        result.manifest["metric"]["range"] = {"score": [0.0, 1.0]}
    with pytest.raises(UsageError, match="can be larger, since it lies between 0 and 1"):
        decision_between(one, two, margin=1.0)


@pytest.mark.parametrize("word", ["metric.relation=ratio", "metric=gender_ratio"])
def test_before_cells_run_no_margin_is_too_large_for_a_number_without_bounds(word):
    check_margin(5.0, composed([word]).build("metric"))


def test_a_difference_that_never_moves_has_no_interval():
    decision = decision_between(cell("a", 0.0), cell("b", 0.0))
    unmoved = replace(decision.difference, ci_low=math.nan, ci_high=math.nan)
    assert "(difference +0.0, no interval, p" in replace(decision, difference=unmoved).sentence()


def test_the_limits_are_parameters():
    pair = cell("a", 0.5), cell("b", 0.1, speech={**ALIKE, "words": 8.0})
    assert decision_between(*pair, limits=Limits(speech=0.5)).winner == "other"


def test_results_of_an_earlier_version_decide_nothing():
    old = cell("a", 0.5)
    manifest = {**old.manifest, "metric": {"direction": "lower is fairer"}}
    decision = decision_between(Result("a", old.rows, manifest), cell("b", 0.1))
    assert "earlier version" in decision.sentence()


def test_p_is_adjusted_for_all_that_decides():
    several = [cell(n, v) for n, v in (("a", 0.5), ("b", 0.505), ("c", 0.502), ("d", 0.504))]
    draws = {r.run_id: {"score": draw(r.rows[0].value)} for r in several}
    alone = decisions(several[:2], draws)[0].difference.p_value
    assert decisions(several, draws)[0].difference.p_value >= alone


def test_only_the_first_is_held_against_everybody():
    several = [cell(n, 0.1 * i) for i, n in enumerate("abc")]
    draws = {r.run_id: {"score": draw(r.rows[0].value)} for r in several}
    assert [(d.first, d.other) for d in decisions(several, draws)] == [("a", "b"), ("a", "c")]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"dataset": "coco"}, r"they differ in dataset \(x, coco\); compare"),
        ({"metric": "leakage"}, r"they differ in metric \(lic, leakage\); compare"),
        ({"captioner": "a"}, "differ only in the captioner; compare"),
    ],
)
def test_what_cannot_be_compared_names_what_differs(more, message):
    with pytest.raises(DataError, match=message):
        compare_results([cell("a", 0.1), cell(**{"captioner": "b", "value": 0.2, **more})])


def test_a_metric_without_scores_is_named():
    with pytest.raises(DataError, match=r"^no two captioners have a score of lic; name a file"):
        compare_results([cell("a", 0.1), cell("b", 0.1)])  # without draws


@pytest.mark.parametrize(("share", "undecided"), [(0.92, False), (0.9, False), (0.85, True)])
def test_of_words_that_an_alignment_removed_nothing_is_decided(share, undecided):
    matched = {**ATTACKED, "matched": True}
    pair = [cell(name, value, matched) for name, value in (("a", 0.3), ("b", 0.1))]
    parts = {"matched:reach": 0.99, "matched:retained": share}
    pair = [
        replace(
            one,
            rows=[*(replace(one.rows[0], part=p, value=v) for p, v in parts.items()), *one.rows],
        )
        for one in pair
    ]
    decision = decision_between(*pair)
    assert bool(decision.doubts) is undecided
    if undecided:
        assert (
            "a: 15% of its words were removed, since annotators do not use them"
            in decision.doubts[0]
        )


def test_by_word_lists_of_another_language_nothing_is_decided():
    language = {"lists": "en", "shares": {"model": 0.03, "human": 1.0}}
    one, two = cell("a", 0.3), cell("b", 0.1)
    foreign = replace(one, manifest={**one.manifest, "language": language})
    assert decision_between(one, two).outcome == "worse"
    decision = decision_between(foreign, two)
    assert decision.outcome == "undecided"
    assert decision.doubts == (
        "a cannot be tested: the word lists are English, and 3% of the captioner's captions are",
    )
    quality = {**foreign.manifest["metric"], "question": "quality"}
    described = replace(foreign, manifest={**foreign.manifest, "metric": quality})
    assert decision_between(described, two).outcome == "worse"


@pytest.mark.parametrize(
    ("first", "second", "margin", "outcome"),
    [
        (0.1, 0.3, None, "passed"),
        (0.3, 0.1, None, "worse"),
        (0.3, 0.1, 0.5, "passed"),
        (0.3, 0.1, 0.05, "worse"),
        (0.3, 0.1, 0.2, "undecided"),
        (math.nan, 0.1, None, "undecided"),
    ],
)
def test_a_gate_passes_only_what_is_decided(first, second, margin, outcome):
    made = [decision_between(cell("a", first), cell("b", second), margin)]
    assert Comparison([], made).outcome == outcome
    if outcome == "worse":
        passed = decision_between(cell("a", 0.1), cell("b", 0.3), margin)
        assert Comparison([], [passed, *made]).outcome == "worse"


@pytest.mark.parametrize(
    ("beyond", "part", "winner"),
    [((0.1, 0.5), "matched:beyond", "first"), ((0.1, math.nan), "score", "other")],
    ids=["both have an annotator at their length", "one has none: the scores"],
)
def test_captioners_at_equal_speech_are_compared_beyond_annotators_of_their_length(
    beyond, part, winner
):
    results, draws = [], {}
    for name, score, number in zip("ab", (0.3, 0.1), beyond, strict=True):
        result = cell(name, score, {**ATTACKED, "matched": True})
        parts = {"matched:reach": 0.99, "matched:beyond": number}
        rows = [replace(result.rows[0], part=key, value=value) for key, value in parts.items()]
        results.append(replace(result, rows=[*result.rows, *rows]))
        draws[result.run_id] = {"score": draw(score), "matched:beyond": draw(number)}
    (decision,) = decisions(results, draws)
    assert (decision.part, decision.winner) == (part, winner)


def test_a_number_with_two_sides_is_compared_by_its_distance():
    pair = [cell(n, value, direction="0 is fairest") for n, value in (("a", -0.04), ("b", 0.09))]
    assert decision_between(*pair).distances == pytest.approx((0.04, 0.09))


def test_of_a_number_that_is_lower_where_it_is_fairer_there_is_no_distance():
    assert decision_between(cell("a", 0.2), cell("b", 0.1)).distances is None
