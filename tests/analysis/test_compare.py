"""Standings and verdicts of made-up results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.analysis.compare import Contest, contests
from bias_pipeline.results import Result
from bias_pipeline.stats.bootstrap import Draws
from tests.report.test_tables import row

LOWER = {"direction": "lower is fairer", "neutral": {"score": 0.0}}
NEARER = {"direction": "nearer to 0 is fairer", "neutral": {"score": 0.0}}


def result(
    captioner: str, reading: object = LOWER, config: object = None, **more: object
) -> Result:
    own = row(captioner=captioner, **more)
    return Result(f"{captioner}-{config}", [own], {"metric": reading, "config": config})


def draw(value: float, noise: float = 0.01) -> Draws:
    generator = np.random.default_rng(abs(hash(value)) % 1000)
    return Draws(
        value + noise * generator.normal(size=3), value + noise * generator.normal(size=(200, 3))
    )


def contest(values: dict[str, float], reading: object = LOWER) -> Contest:
    results = [result(name, reading) for name in values]
    draws = {r.run_id: {"score": draw(values[r.rows[0].captioner])} for r in results}
    (found,) = contests(results, draws)
    return found


def test_the_fairest_stands_first() -> None:
    standings = contest({"a": 0.3, "b": 0.1, "c": 0.2}).standings
    assert [standing.row.captioner for standing in standings] == ["b", "c", "a"]


def test_where_lower_is_not_fairer_the_nearest_to_neutral_stands_first() -> None:
    standings = contest({"a": -0.3, "b": 0.1}, NEARER).standings
    assert [standing.row.captioner for standing in standings] == ["b", "a"]


def test_equal_captioners_share_a_letter() -> None:
    letters = {
        s.row.captioner: s.letters for s in contest({"a": 0.3, "b": 0.3, "c": 0.9}).standings
    }
    assert letters == {"a": "a", "b": "a", "c": "b"}


@pytest.mark.parametrize(
    ("values", "winner"),
    [
        ({"a": 0.1, "b": 0.5}, "first"),
        ({"a": 0.5, "b": 0.1}, "other"),
        ({"a": 0.5, "b": 0.5}, ""),
    ],
)
def test_who_wins(values: dict[str, float], winner: str) -> None:
    assert contest(values).duels[0].winner == winner


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"a": 0.1, "b": 0.5}, "lic: a is fairer than b (difference -"),
        ({"a": 0.5, "b": 0.1}, "lic: a is less fair than b (difference +"),
        ({"a": 0.5, "b": 0.5}, "lic: a and b cannot be told apart"),
    ],
)
def test_the_verdict_is_a_sentence(values: dict[str, float], told: str) -> None:
    results = [result(name, metric="lic") for name in values]
    draws = {r.run_id: {"score": draw(values[r.rows[0].captioner])} for r in results}
    assert contests(results, draws)[0].verdicts()[0].startswith(told)


def test_only_the_first_fights_everybody() -> None:
    assert [duel.other for duel in contest({"a": 0.1, "b": 0.2, "c": 0.3}).duels] == ["b", "c"]


def test_p_is_adjusted_for_all_pairs() -> None:
    two = contest({"a": 0.5, "b": 0.505}).duels[0].difference.p_value
    many = contest({"a": 0.5, "b": 0.505, "c": 0.502, "d": 0.504}).duels[0].difference.p_value
    assert many >= two


def test_cells_that_differ_in_more_are_not_compared() -> None:
    results = [result("a", config={"encoder": 1}), result("b", config={"encoder": 2})]
    draws = {r.run_id: {"score": draw(0.1)} for r in results}
    assert contests(results, draws) == []


def test_both_directions_are_compared() -> None:
    results = [
        replace(result(n), rows=[row(captioner=n, part=p) for p in ("a_to_t", "t_to_a")])
        for n in "ab"
    ]
    draws = {r.run_id: {"a_to_t": draw(0.1), "t_to_a": draw(0.2)} for r in results}
    assert [found.part for found in contests(results, draws)] == ["a_to_t", "t_to_a"]
