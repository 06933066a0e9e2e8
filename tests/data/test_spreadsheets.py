"""Excel sheets: the only sheet is read, with the extra, and refused in a sentence without."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.data import binary_tables
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io import machine

HEAD = ("image_id", "caption")


def workbook(path: Path, *sheets: Sequence[Sequence[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for rows in sheets:
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_numbers_texts_and_gaps_are_read(tmp_path):
    rows = [HEAD, (7, "a dog"), (None, None), ("000008", "a cat"), (9.0, "an owl")]
    path = workbook(tmp_path / "mine.xlsx", rows)
    assert model_captions(path).captions == {"7": "a dog", "8": "a cat", "9": "an owl"}


def test_an_empty_cell_is_a_blank_caption(tmp_path):
    path = workbook(tmp_path / "mine.xlsx", [HEAD, (7, "a dog"), (8,)])
    assert model_captions(path).captions == {"7": "a dog", "8": ""}


@pytest.mark.parametrize(
    ("sheets", "fault"),
    [
        (([HEAD, (7, "a dog")], [HEAD]), "has 2 sheets; keep one of them"),
        (([("image_id", None, "caption"), (7, 1, "a dog")],), "row 1: a column has no name"),
        (([("image_id", "caption", "caption"), (7, "a", "b")],), "column 'caption' occurs twice"),
        (([],), "holds no captions"),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(tmp_path, sheets, fault):
    with pytest.raises(DataError, match=fault):
        model_captions(workbook(tmp_path / "mine.xlsx", *sheets))


def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = workbook(tmp_path / "mine.xlsx", [HEAD, (7, "a dog")])
    monkeypatch.setattr(binary_tables, "MAX_UNPACKED", 100)
    with pytest.raises(DataError, match="more than the 100 that are read"):
        model_captions(path)


def test_without_the_extra_it_is_named(tmp_path, monkeypatch):
    def absent(name: str) -> Any:
        return None if name == "openpyxl" else find_spec(name)

    monkeypatch.setattr(machine, "find_spec", absent)
    path = tmp_path / "mine.xlsx"
    path.write_bytes(b"PK")
    with pytest.raises(ResourceError, match=r"pip install 'bias_pipeline\[sheets\]'"):
        model_captions(path)
