"""What cards say of conclusions is what audits do, and fits what was measured."""

from __future__ import annotations

import math

import pytest

from bias_pipeline.analysis.conclusion_checks import LIMITS
from bias_pipeline.analysis.usability import MATCHED, NO, YES, movements_of, usability
from bias_pipeline.catalogue.cards import card
from bias_pipeline.catalogue.registry import infos
from tests.metrics.test_contract import NAMES

USABLE = [
    (name, answer.part, "matched" if answer.answer == MATCHED else "constant")
    for name, info in infos().items()
    for answer in usability(info)
    if answer.answer != NO and movements_of(name, answer.part, "constant")
]


@pytest.mark.parametrize("name", NAMES)
def test_every_card_says_whether_it_is_usable(name: str) -> None:
    (line,) = (x for x in card(name).splitlines() if x.startswith("| usable for a conclusion |"))
    assert any(f"`: {answer}" in line for answer in (YES, MATCHED, NO))


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_that_is_not_usable_says_why(name: str) -> None:
    answers = usability(infos()[name])
    assert answers
    assert all(bool(answer.reason) == (answer.answer == NO) for answer in answers)


@pytest.mark.parametrize(("name", "part", "alignment"), USABLE)
def test_what_is_usable_does_not_move_beyond_its_interval_and_a_little(
    name: str, part: str, alignment: str
) -> None:
    for movement in movements_of(name, part, alignment):
        half = 0.0 if math.isnan(movement.half_width) else movement.half_width
        assert movement.moved - half < LIMITS.close


def test_attackers_are_usable_at_equal_speech_only() -> None:
    answers = {name: usability(infos()[name])[0].answer for name in ("lic", "leakage", "dbac")}
    assert set(answers.values()) == {MATCHED}
