"""What is planted in simulated captioners is printed beside what was found, and is found."""

import re

import pytest

from tests.cli.commands import results, rows

CARD = ("metric=dbac", "attribute=race", "logger=csv")


def planted_lines(text: str) -> dict[tuple[str, str], list[float]]:
    """(captioner, score) to what was planted, then what was found with its interval."""
    _, _, table = text.partition("what we planted, and what was found\n")
    return {
        (captioner, score): [*map(float, re.findall(r"-?\d+\.\d", numbers))]
        for captioner, score, numbers in re.findall(r"(?m)^  (\w+) +(\w.*?)  +(-?\d.*)$", table)
    }


def test_what_is_planted_stands_beside_what_was_found(ok):
    words = ("captioner=stereotyper,faithful", "dataset.n_images=1000", "logger=csv")
    shown = planted_lines(ok("metric=gender_error", *words, "stats.resamples=100"))
    assert [*shown] == [("stereotyper", "gender_error"), ("faithful", "gender_error")]
    planted, measured, low, high = shown["stereotyper", "gender_error"]
    assert low < planted < high
    assert abs(measured - planted) < 1.5
    assert shown["faithful", "gender_error"][:2] == [0, 0]


@pytest.mark.parametrize(
    "words",
    [
        ("+dataset.captioners.stereotyper.a_to_t=0.1", "captioner=stereotyper"),
        ("metric=quality", "captioner=stereotyper"),
    ],
    ids=["a captioner with dials of one's own", "a metric of which nothing is known"],
)
def test_nothing_is_said_of_what_is_not_known(ok, words):
    text = ok("metric=gender_error", "dataset.n_images=75", "logger=csv", *words)
    assert "planted" not in text


@pytest.mark.slow
def test_the_bias_about_race_is_found_in_both_directions(ok, tmp_path):
    """With n-grams; the card's LSTM finds 19.6 [12.5, 26.6] and 71.2 [63.8, 78.7]."""
    few = ("seeds=3", "metric.positions=2", "captioner=amplifier,faithful")
    shown = planted_lines(ok(*CARD, *few))
    assert shown["amplifier", "dbac A→T"][0] == 50.0
    assert shown["amplifier", "dbac T→A"][0] == 71.4
    lows = {
        (row["captioner"], row["part"]): row["ci_low"]
        for path in results(tmp_path)
        for row in rows(path)
        if row["part"] in ("a_to_t", "t_to_a")
    }
    assert lows["amplifier", "a_to_t"] > 0.02
    assert lows["amplifier", "t_to_a"] > 0.4
    assert max(lows["faithful", part] for part in ("a_to_t", "t_to_a")) <= 0
