"""The bounds of a score over annotators."""

from dataclasses import replace

import pytest

from bias_pipeline.report.sections import Bounds, bounds
from bias_pipeline.results.settings import ANNOTATOR
from bias_pipeline.results.store import Result, Row
from tests.report.test_tables import row


def cell(who: str, value: float, half: float = 0.01, **changes: object) -> tuple[Result, dict]:
    headline: Row = row(
        part="score", value=value, ci_low=value - half, ci_high=value + half, **changes
    )
    return Result("x", [headline], {}), {ANNOTATOR: who}


def bounds_of(*cells: tuple[Result, dict]) -> list[Bounds]:
    return bounds([result for result, _ in cells], [swept for _, swept in cells])


@pytest.fixture
def three() -> Bounds:
    (bounds,) = bounds_of(cell("majority", 0.02), cell("a", 0.01, 0.05), cell("b", 0.03))
    return bounds


def test_the_bounds_are_the_extremes(three):
    assert (three.lowest, three.highest) == ("a", "b")


def test_sampling_widens_them_to_the_ends_of_the_widest_intervals(three):
    assert three.sampled == pytest.approx((-0.04, 0.06))


def test_the_sentence_is_in_per_cent(three):
    assert "lies between 1.0 (a) and 3.0 (b)" in three.sentence()


def test_captioners_have_bounds_of_their_own():
    cells = []
    for captioner in ("sat", "fc"):
        for who in ("a", "b"):
            result, swept = cell(who, 0.1, captioner=captioner)
            cells.append((result, {**swept, "captioner": captioner}))
    assert len(bounds_of(*cells)) == 2


def test_another_sweep_has_none():
    cells = [cell("a", 0.1), cell("b", 0.2)]
    assert bounds([result for result, _ in cells], [{"seeds": "1"}, {"seeds": "2"}]) == []


def test_an_absent_score_bounds_nothing():
    assert bounds_of(cell("a", 0.1), cell("b", float("nan"))) == []


def test_sides_are_no_headlines():
    cells = [cell(who, 0.1) for who in "ab"]
    sides = [(replace(r, rows=[replace(r.rows[0], part="model")]), item) for r, item in cells]
    assert bounds_of(*sides) == []
