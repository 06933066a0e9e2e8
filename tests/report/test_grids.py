"""Grids of pictures: in a page as pictures, in files drawn, and nothing of a foreign file."""

import re

import pytest
from PIL import Image

from bias_pipeline.errors import DataError
from bias_pipeline.report.examples import grid_of
from bias_pipeline.vision.photos import thumbnail

COLOURS = ("red", "green", "blue")


def lines(**changes: str) -> list[dict[str, str]]:
    return [
        {"concept": concept, "group": group, "picture": thumbnail(Image.new("RGB", (9, 9), colour))}
        | changes
        for concept in ("boating", "<i>nurse</i>")
        for group, colour in zip(("male", "female", "<b>x</b>"), COLOURS, strict=True)
    ]


def test_a_page_holds_each_picture_with_its_group():
    grid = grid_of(lines(), "queries")
    assert grid is not None
    text = grid.inline()
    assert re.findall(r'alt="(\w+)"', text) == ["male", "female"] * 2
    assert text.count('src="data:image/jpeg;base64,/9j/') == 6
    assert text.count("<tr>") == 2


def test_no_markup_of_the_data_is_in_it():
    grid = grid_of(lines(), "<script>")
    assert grid is not None
    assert not re.search(r"<(i|b|script)>", grid.inline())


def test_files_show_them_too_the_same_each_time():
    one, other = (grid_of(lines(), "queries") for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.png() == other.png()
    assert one.svg() == other.svg()
    assert "<image" in one.svg()


@pytest.mark.parametrize("table", [[], lines(picture=""), [{"concept": "boating"}]])
def test_without_pictures_there_is_no_grid(table):
    assert grid_of(table, "queries") is None


def test_what_is_no_picture_is_refused():
    with pytest.raises(DataError, match="no JPEG"):
        grid_of(lines(picture='x" onerror="alert(1)'), "queries")


def test_a_grid_is_of_few():
    with pytest.raises(DataError, match="at most 100"):
        grid_of(lines() * 20, "queries")
