"""Grids of pictures: in a page as pictures, in files drawn, and nothing of a foreign file."""

import re

import pytest
from PIL import Image

from bias_pipeline.data.photos import thumbnail
from bias_pipeline.errors import DataError
from bias_pipeline.report.examples import grid_of

COLOURS = ("red", "green", "blue")


def lines(**changes: str) -> list[dict[str, str]]:
    return [
        {"concept": concept, "group": group, "picture": thumbnail(Image.new("RGB", (9, 9), colour))}
        | changes
        for concept in ("boating", "<i>nurse</i>")
        for group, colour in zip(("male", "female", "<b>x</b>"), COLOURS, strict=True)
    ]


def test_a_page_holds_each_picture_with_its_group_and_no_markup_of_the_data():
    text = grid_of(lines(), "<script>").inline()
    assert re.findall(r'alt="(\w+)"', text) == ["male", "female"] * 2
    assert text.count('src="data:image/jpeg;base64,/9j/') == 6
    assert text.count("<tr>") == 2
    assert not re.search(r"<(i|b|script)>", text)


def test_files_show_them_too_the_same_each_time():
    one, other = (grid_of(lines(), "queries") for _ in range(2))
    assert (one.png(), one.svg()) == (other.png(), other.svg())
    assert "<image" in one.svg()


@pytest.mark.parametrize("table", [[], lines(picture=""), [{"concept": "boating"}]])
def test_without_pictures_there_is_no_grid(table):
    assert grid_of(table, "queries") is None


@pytest.mark.parametrize(
    ("table", "message"),
    [(lines(picture='x" onerror="alert(1)'), "no JPEG"), (lines() * 20, "at most 100")],
)
def test_what_cannot_be_a_grid_is_refused(table, message):
    with pytest.raises(DataError, match=message):
        grid_of(table, "queries")
