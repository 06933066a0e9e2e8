"""Standings of made-up results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bias_pipeline.analysis.compare import ALL_PAIRS, Contest, contests, draws_ranked
from bias_pipeline.results.store import Result
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


def test_of_very_many_each_is_compared_with_the_fairest_alone() -> None:
    found = contest({f"c{i}": 0.1 if i < 2 else 0.9 for i in range(ALL_PAIRS + 1)})
    letters = [standing.letters for standing in found.standings]
    assert found.against_first
    assert letters == ["a", "a", *[""] * (ALL_PAIRS - 1)]


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


def test_counts_stay_counts_when_they_are_ranked() -> None:
    """A count has one column and no seed: it is not one attacker, whose spread nobody knows."""
    counted = Draws(np.array([-0.2]), np.linspace(-0.3, -0.1, 5)[:, None], trained=False)
    assert not draws_ranked(result("a", NEARER), "score", counted).trained
