"""What decides between two captioners, and what does not: made-up results."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from bias_pipeline.analysis.doubts import LIMITS, Limits
from bias_pipeline.analysis.gate import Decision, decisions
from bias_pipeline.errors import UsageError
from bias_pipeline.results.store import Result
from bias_pipeline.stats.bootstrap import Draws
from tests.analysis.test_compare import draw
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
    **more: object,
) -> Result:
    """A result of which the reading's part is ``value`` and the headline is always 0.1."""
    part = str(reading["part"]) if reading else "score"
    own = {"captioner": captioner, "metric": "lic", "neutral_rate": speech["neutral"], **more}
    headline = row(**{**own, "part": "score", "value": 0.1})
    rows = [headline, row(**{**own, "part": part, "value": value})] if part != "score" else []
    manifest = {
        "metric": {
            "direction": direction,
            "question": "leakage",
            "readings": {"score": dict(reading)} if reading else {},
        },
        "speech": {"model": dict(speech), "human": ALIKE},
        "corpus": {"captioned": captioned, "blank_share": {"model": blanks}},
    }
    return Result(captioner, rows or [row(**{**own, "value": value})], manifest)


def decided(
    one: Result, two: Result, margin: float | None = None, limits: Limits = LIMITS
) -> Decision:
    draws = {r.run_id: {r.rows[-1].part: draw(r.rows[-1].value)} for r in (one, two)}
    (found,) = decisions([one, two], draws, margin=margin, limits=limits)
    return found


def rare(wrong: tuple[int, int], n: int, margin: float | None = None) -> Decision:
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
    (found,) = decisions(pair, draws, margin=margin)
    return found


@pytest.mark.parametrize(
    ("values", "winner", "told"),
    [
        ((0.1, 0.5), "first", "lic: a is fairer than b (difference -"),
        ((0.5, 0.1), "other", "lic: a is less fair than b (difference +"),
        ((0.5, 0.5), "", "lic: a and b cannot be told apart"),
    ],
)
def test_who_wins(values: tuple[float, float], winner: str, told: str) -> None:
    found = decided(cell("a", values[0]), cell("b", values[1]))
    assert found.winner == winner
    assert found.sentence().startswith(told)


@pytest.mark.parametrize(
    ("values", "told"),
    [((2.0, 1.0), "lic: a is better than b (difference +9"), ((1.0, 2.0), "a is worse than b")],
)
def test_quality_is_compared_by_what_is_better(values: tuple[float, float], told: str) -> None:
    pair = [cell(n, v, direction="higher is better") for n, v in zip("ab", values, strict=True)]
    assert told in decided(*pair).sentence()


@pytest.mark.parametrize(
    ("other", "doubt"),
    [
        (cell("b", 0.1, speech={**ALIKE, "words": 8.0}), "words a caption"),
        (cell("b", 0.1, speech={**ALIKE, "vocabulary": 70.0}), "vocabulary"),
        (cell("b", 0.1, speech={**ALIKE, "neutral": 0.9}), "names no group in 90%"),
        (cell("b", 0.1, captioned=0.7), "captions of 100.0% of the labelled images and b of 70.0%"),
        (cell("b", 0.1, blanks=0.2), "20% of the captions of b are blank"),
        (cell("b", 0.1, coverage=0.02), "rests on 2% of the labelled images"),
        (cell("b", math.nan), "of b, it has no value"),
    ],
)
def test_who_speaks_or_covers_otherwise_wins_nothing(other: Result, doubt: str) -> None:
    found = decided(cell("a", 0.5), other)
    assert (found.winner, doubt in found.sentence()) == ("", True)


def test_a_headline_that_follows_how_much_is_said_decides_nothing() -> None:
    found = decided(cell("a", 0.5, reading=None), cell("b", 0.1, reading=None))
    assert (found.winner, "follows how much is said" in found.sentence()) == ("", True)


def test_a_silent_loser_is_a_loser() -> None:
    silent = cell("a", 0.5, speech={**ALIKE, "neutral": 0.9})
    assert decided(silent, cell("b", 0.1)).winner == "other"


def test_the_reading_decides_and_not_the_headline() -> None:
    found = decided(cell("a", 0.5, COUNTED), cell("b", 0.1, COUNTED))
    assert (found.winner, found.part) == ("other", "named")
    assert found.sentence().startswith("lic (by named): a is less fair than b")


def test_who_hardly_names_a_group_decides_nothing() -> None:
    speech = {**ALIKE, "neutral": 0.97}
    found = decided(cell("a", 0.5, COUNTED, speech), cell("b", 0.1, COUNTED, speech))
    assert "3% of the captions name a group" in found.sentence()


def test_nothing_wrong_on_either_side_of_few_images_is_no_difference_that_was_ruled_out() -> None:
    found = rare((0, 0), 30)
    assert (found.outcome, found.difference.p_value) == ("passed", 1.0)
    assert "a difference below 1" in found.sentence()
    assert "points could not have been seen" in found.sentence()


@pytest.mark.parametrize(
    ("wrong", "n", "outcome", "sentence"),
    [
        ((0, 0), 30, "undecided", "it cannot be told whether a is less fair than b by more than"),
        ((0, 0), 3000, "passed", "a is not less fair than b by more than 1 points"),
        ((300, 0), 3000, "worse", "a is less fair than b by more than 1 points"),
        ((40, 0), 3000, "undecided", "cannot be told"),
        ((15, 0), 3000, "passed", "not less fair"),
    ],
)
def test_with_a_margin_the_whole_interval_decides(
    wrong: tuple[int, int], n: int, outcome: str, sentence: str
) -> None:
    found = rare(wrong, n, margin=0.01)
    assert (found.outcome, sentence in found.sentence()) == (outcome, True), found.sentence()


def test_a_margin_that_every_difference_is_below_is_refused() -> None:
    one, two = cell("a", 0.5), cell("b", 0.1)
    for result in (one, two):
        result.manifest["metric"]["range"] = {"score": [0.0, 1.0]}  # type: ignore[index]
    with pytest.raises(UsageError, match="lies between 0 and 1, so no difference is above it"):
        decided(one, two, margin=1.0)


def test_the_limits_are_parameters() -> None:
    pair = cell("a", 0.5), cell("b", 0.1, speech={**ALIKE, "words": 8.0})
    assert decided(*pair, limits=Limits(speech=0.5)).winner == "other"


def test_results_of_an_earlier_version_decide_nothing() -> None:
    old = cell("a", 0.5)
    manifest = {**old.manifest, "metric": {"direction": "lower is fairer"}}
    found = decided(Result("a", old.rows, manifest), cell("b", 0.1))
    assert "earlier version" in found.sentence()


def test_p_is_adjusted_for_all_that_decides() -> None:
    several = [cell(n, v) for n, v in (("a", 0.5), ("b", 0.505), ("c", 0.502), ("d", 0.504))]
    draws = {r.run_id: {"score": draw(r.rows[0].value)} for r in several}
    alone = decisions(several[:2], draws)[0].difference.p_value
    assert decisions(several, draws)[0].difference.p_value >= alone


def test_only_the_first_is_held_against_everybody() -> None:
    several = [cell(n, 0.1 * i) for i, n in enumerate("abc")]
    draws = {r.run_id: {"score": draw(r.rows[0].value)} for r in several}
    assert [(d.first, d.other) for d in decisions(several, draws)] == [("a", "b"), ("a", "c")]
