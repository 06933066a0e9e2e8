"""Standings of made-up results."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.report.compare import ALL_PAIRS, Leaderboard, draws_ranked, rank_captioners
from bias_pipeline.results.rows import Result
from bias_pipeline.stats.bootstrap import Draws
from tests.report.test_tables import row

LOWER = {"direction": "lower is fairer", "neutral": {"score": 0.0}}
NEARER = {"direction": "nearer to 0 is fairer", "neutral": {"score": 0.0}}


def result(
    captioner: str, reading: object = LOWER, config: object = None, **more: object
) -> Result:
    headline = row(captioner=captioner, **more)
    return Result(f"{captioner}-{config}", [headline], {"metric": reading, "config": config})


def draw(value: float, noise: float = 0.01) -> Draws:
    generator = np.random.default_rng(abs(hash(value)) % 1000)
    return Draws(
        value + noise * generator.normal(size=3), value + noise * generator.normal(size=(200, 3))
    )


def leaderboard(values: dict[str, float], reading: object = LOWER) -> Leaderboard:
    results = [result(name, reading) for name in values]
    draws = {r.run_id: {"score": draw(values[r.rows[0].captioner])} for r in results}
    (only,) = rank_captioners(results, draws)
    return only


@pytest.mark.parametrize(
    ("values", "reading", "order"),
    [
        ({"a": 0.3, "b": 0.1, "c": 0.2}, LOWER, ["b", "c", "a"]),
        ({"a": -0.3, "b": 0.1}, NEARER, ["b", "a"]),
    ],
    ids=["lower is fairer", "nearer to neutral is fairer"],
)
def test_the_fairest_stands_first(values, reading, order):
    assert [rank.row.captioner for rank in leaderboard(values, reading).ranks] == order


def test_equal_captioners_share_a_letter():
    ranks = leaderboard({"a": 0.3, "b": 0.3, "c": 0.9}).ranks
    assert {rank.row.captioner: rank.letters for rank in ranks} == {"a": "a", "b": "a", "c": "b"}


def test_of_very_many_each_is_compared_with_the_fairest_alone():
    computed = leaderboard({f"c{i}": 0.1 if i < 2 else 0.9 for i in range(ALL_PAIRS + 1)})
    letters = [rank.letters for rank in computed.ranks]
    assert computed.against_first
    assert letters == ["a", "a", *[""] * (ALL_PAIRS - 1)]


def test_cells_that_differ_in_more_are_not_compared():
    results = [result("a", config={"encoder": 1}), result("b", config={"encoder": 2})]
    draws = {r.run_id: {"score": draw(0.1)} for r in results}
    assert rank_captioners(results, draws) == []


def test_captions_of_which_other_parts_are_scored_are_not_compared():
    results = [result("a"), result("b")]
    results[1] = replace(results[1], manifest={**results[1].manifest, "text": {"unit": "sentence"}})
    draws = {r.run_id: {"score": draw(0.1)} for r in results}
    assert rank_captioners(results, draws) == []


def test_both_directions_are_compared():
    results = [
        replace(result(n), rows=[row(captioner=n, part=p) for p in ("a_to_t", "t_to_a")])
        for n in "ab"
    ]
    draws = {r.run_id: {"a_to_t": draw(0.1), "t_to_a": draw(0.2)} for r in results}
    assert [board.part for board in rank_captioners(results, draws)] == ["a_to_t", "t_to_a"]


def test_counts_stay_counts_when_they_are_ranked():
    """A count has one column and no seed: it is not one attacker, whose spread nobody knows."""
    counted = Draws(np.array([-0.2]), np.linspace(-0.3, -0.1, 5)[:, None], trained=False)
    assert not draws_ranked(result("a", NEARER), "score", counted).trained
