"""People's captions are read once for all captioners, and anew once their file changed."""

import json
from pathlib import Path

import pytest

from bias_pipeline.data import people_once as packed
from bias_pipeline.data.coco_files import human_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.people_once import people_once

ROWS = [
    {"id": 2, "imageid": 7, "text": "un café"},
    {"id": 1, "imageid": 7, "text": "a dog"},
    {"id": 3, "imageid": 8, "text": ""},
]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    packed._last.clear()
    path = tmp_path / "people.json"
    path.write_text(json.dumps(ROWS))
    return path


def not_again(*_: object) -> None:
    pytest.fail("is read again")


def test_captions_are_read_once_with_their_notes(people, monkeypatch):
    alone, first, second = Layout(), Layout(), Layout()
    expected = human_captions(people, alone)
    assert people_once(people, first) == expected
    monkeypatch.setattr(packed, "human_captions", not_again)
    assert people_once(people, second) == expected
    assert alone.notes() == first.notes() == second.notes() != []


def test_a_file_that_changed_is_read_anew(people):
    people_once(people, Layout())
    people.write_text(json.dumps([*ROWS, {"id": 4, "imageid": 9, "text": "a cat"}]))
    assert people_once(people, Layout())[0]["9"] == ("a cat",)


def test_other_settings_read_the_file_anew(people):
    people_once(people, Layout())
    people.write_text(json.dumps([{**row, "words": "a cat"} for row in ROWS]))
    by_image, _ = people_once(people, Layout(human_caption_column="words"))
    assert by_image["7"] == ("a cat", "a cat")


@pytest.mark.parametrize("mark", [{}, {"is_precanned": True}])
def test_what_cannot_be_kept_is_read_each_time(people, monkeypatch, mark):
    rows = [{**row, **mark, "text": f"{row['text']}" + ("" if mark else "\0")} for row in ROWS]
    people.write_text(json.dumps(rows))
    expected = human_captions(people)
    assert people_once(people, Layout()) == expected
    assert not packed._last
    assert people_once(people, Layout()) == expected


def test_many_captions_are_not_kept(people, monkeypatch):
    monkeypatch.setattr(packed, "_MOST", 8)
    people_once(people, Layout())
    assert not packed._last
