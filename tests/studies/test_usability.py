"""What cards say of conclusions is what audits do, and fits what was measured."""

import math

import pytest

from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.report.conclusion_checks import LIMITS
from bias_pipeline.report.power import (
    MATCHED,
    NO,
    ONLY_YES,
    YES,
    measured_of,
    measured_powers,
    movements_of,
    usability,
)
from bias_pipeline.studies.metric_cards import ALLOWS, card
from tests.metrics.test_contract import NAMES

USABLE = [
    (name, answer.part, "matched" if answer.answer == MATCHED else "constant")
    for name, info in infos().items()
    for answer in usability(info)
    if answer.answer != NO and movements_of(name, answer.part, "constant")
]


@pytest.mark.parametrize("name", NAMES)
def test_every_card_says_whether_it_is_usable(name):
    (line,) = (x for x in card(name).splitlines() if x.startswith("* **conclusions**: "))
    assert any(f"` allows {allowed}" in line for allowed in ALLOWS.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_that_is_not_usable_says_why(name):
    answers = usability(infos()[name])
    assert answers
    assert all(bool(answer.reason) == (answer.answer in (NO, ONLY_YES)) for answer in answers)


@pytest.mark.parametrize(("name", "part", "alignment"), USABLE)
def test_what_is_usable_does_not_move_beyond_its_interval_and_a_little(name, part, alignment):
    for movement in movements_of(name, part, alignment):
        half = 0.0 if math.isnan(movement.half_width) else movement.half_width
        assert movement.moved - half < LIMITS.negligible


def test_attackers_are_usable_at_equal_speech_only():
    answers = {name: usability(infos()[name])[0].answer for name in ("lic", "leakage", "dbac")}
    assert set(answers.values()) == {MATCHED}


@pytest.mark.parametrize("name", NAMES)
def test_what_finds_planted_bias_at_no_size_is_not_simply_usable(name):
    blind = {
        (power.any_measurement.metric, power.any_measurement.part)
        for power in measured_powers()
        if not any(
            m.concluded >= 0.8 * m.trials
            for other in measured_of(power.any_measurement.metric, power.any_measurement.part)
            for m in other.measurements
            if m.planted == 20
        )
    }
    answers = {a.part for a in usability(infos()[name]) if a.answer == YES}
    assert not {(name, part) for part in answers} & blind


def test_of_bias_that_stays_unseen_the_card_says_so():
    names = ("ba_mals", "ba_directional")
    answers = {a.part: a.answer for name in names for a in usability(infos()[name])}
    assert answers == {"score": ONLY_YES, "a_to_t": NO, "t_to_a:named": ONLY_YES}
