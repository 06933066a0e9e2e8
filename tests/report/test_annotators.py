"""The bounds of a score over annotators."""

import math
from dataclasses import replace

import pytest

from bias_pipeline.report.sections import Bounds, bounds
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import ANNOTATOR
from tests.report.test_tables import row


def cell(who: str, value: float, half: float = 0.01, **changes: object) -> tuple[Result, dict]:
    headline: Row = row(
        part="score", value=value, ci_low=value - half, ci_high=value + half, **changes
    )
    return Result("x", [headline], {}), {ANNOTATOR: who}


def side(who: str) -> tuple[Result, dict]:
    result, swept = cell(who, 0.1)
    return replace(result, rows=[replace(result.rows[0], part="model")]), swept


def bounds_of(*cells: tuple[Result, dict]) -> list[Bounds]:
    return bounds([result for result, _ in cells], [swept for _, swept in cells])


def test_the_bounds_are_the_extremes_and_sampling_widens_them():
    (three,) = bounds_of(cell("majority", 0.02), cell("a", 0.01, 0.05), cell("b", 0.03))
    assert (three.lowest, three.highest) == ("a", "b")
    assert three.sampled_ends == pytest.approx((-0.04, 0.06))
    assert "lies between 1.0 (a) and 3.0 (b)" in three.sentence()


def test_captioners_have_bounds_of_their_own():
    cells = []
    for captioner in ("sat", "fc"):
        for who in ("a", "b"):
            result, swept = cell(who, 0.1, captioner=captioner)
            cells.append((result, {**swept, "captioner": captioner}))
    assert len(bounds_of(*cells)) == 2


@pytest.mark.parametrize(
    ("cells", "swept"),
    [
        ([cell("a", 0.1), cell("b", 0.2)], [{"seeds": "1"}, {"seeds": "2"}]),
        ([cell("a", 0.1), cell("b", math.nan)], [{ANNOTATOR: "a"}, {ANNOTATOR: "b"}]),
        ([side("a"), side("b")], [{ANNOTATOR: "a"}, {ANNOTATOR: "b"}]),
    ],
    ids=["another sweep", "an absent score", "sides are no headlines"],
)
def test_nothing_is_bounded(cells, swept):
    assert bounds([result for result, _ in cells], swept) == []
