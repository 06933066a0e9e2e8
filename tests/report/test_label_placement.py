"""Names beside points: none hides another, none leaves the figure."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.report.figures import scatter, spread
from tests.report.test_page import Elements
from tests.report.test_tables import row

AREA = np.array([0.0, 0.0, 600.0, 400.0])
NONE = np.empty((0, 4))


def n_hidden(corners: np.ndarray, sizes: np.ndarray) -> int:
    """How many pairs of names overlap."""
    ends = corners + sizes
    pairs = combinations(range(len(corners)), 2)
    return sum(bool(((corners[i] < ends[j]) & (corners[j] < ends[i])).all()) for i, j in pairs)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_names_of_one_place_do_not_hide_each_other(n):
    points, sizes = np.full((n, 2), 250.0), np.tile([60.0, 12.0], (n, 1))
    assert n_hidden(spread(points, sizes, AREA, NONE), sizes) == 0


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(20, 580), st.integers(20, 380)), min_size=1, max_size=9))
def test_names_stay_in_the_figure_and_apart(places):
    points, sizes = np.array(places, float), np.tile([50.0, 12.0], (len(places), 1))
    corners = spread(points, sizes, AREA, NONE)
    assert (corners >= AREA[:2]).all()
    assert (corners + sizes <= AREA[2:]).all()
    assert n_hidden(corners, sizes) == 0


def place_of_name(x: float, y: float, lines: np.ndarray = NONE) -> np.ndarray:
    (corner,) = spread(np.array([[x, y]]), np.array([[50.0, 12]]), AREA, lines)
    return corner


def test_a_name_stands_at_its_point_where_nothing_is_in_the_way():
    assert place_of_name(100, 100).tolist() == [106.0, 106.0]


def test_a_name_at_the_edge_turns_inwards():
    assert place_of_name(590, 200)[0] + 50 < 590


def test_a_name_avoids_a_line():
    assert not 98 < place_of_name(100, 100, np.array([[100.0, 110, 600, 112]]))[1] < 112


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_point_without_a_place_has_no_name_and_harms_none(value):
    pairs = [(row(captioner="gone", value=value), row()), (row(captioner="here"), row())]
    text = Elements(scatter(pairs, "t", ("a", "b")).inline()).text
    assert "here" in text
    assert "gone" not in text
