"""Lists of objects in JSON become columns with the values and refusals of a strict reader."""

import json
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.data import json_columns, tables
from bias_pipeline.data.coco_files import (
    human_captions,
    model_captions,
    objects_by_id,
    sample_numbers,
)
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.json_columns import ObjectColumns, lists_apart, load_lists
from bias_pipeline.data.tables import open_rows
from bias_pipeline.errors import DataError

ODD = [
    'a dog }, {"image_id": 9, "caption": "a cat',
    "2020-01-01",
    "a\x00b",
    "\U0001f600 café",
    ':[{"a": 1}]',
    '"list 0"',
    "",
]


def rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    return [(number, dict(row)) for number, row in open_rows(path, what="captions").items]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_odd_texts_are_read_as_they_are(tmp_path, indent, ascii_only):
    path = tmp_path / "mine.json"
    entries = [{"image_id": 7 + k, "caption": text} for k, text in enumerate(ODD)]
    path.write_text(json.dumps(entries, indent=indent, ensure_ascii=ascii_only), "utf-8")
    assert rows(path) == list(enumerate(entries))


def test_plain_files_are_read_as_columns(tmp_path):
    path = tmp_path / "people.json"
    annotations = [{"id": k, "image_id": 7, "caption": f"a dog {k}"} for k in range(3)]
    path.write_text(json.dumps({"info": {}, "annotations": annotations, "licenses": []}))
    read = load_lists(path, what="captions", wanted=["caption"])
    assert isinstance(read, dict)
    assert isinstance(read["annotations"], ObjectColumns)
    assert (read["info"], read["licenses"], read["annotations"].first) == ({}, [], annotations[0])


@pytest.mark.parametrize(
    "value",
    [*(None, 1.0, 10**30, 2**63, [1], {"a": 1}, float("nan"), "\ud83d"), *(True, -0.0, 1e5)],
)
def test_values_that_arrow_would_change_are_left_to_the_strict_reader(tmp_path, value):
    path = tmp_path / "mine.json"
    entries = [{"image_id": 7, "caption": value}, {"image_id": 8, "caption": "a dog"}]
    path.write_text(json.dumps(entries))
    data = path.read_bytes()
    assert lists_apart(data, None) is None
    if value == value and value != "\ud83d":
        assert rows(path) == list(enumerate(entries))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[{"image_id": 7, "caption": "a"} {"image_id": 8, "caption": "b"}]', "line 1, column 34"),
        ('[{"image_id": 7, "caption": "a"},\n {"image_id": 8, "image_id": 9}]', "occurs twice"),
        ('[{"image_id": 7, "caption": "a"},\n {"image_id": 8, "caption": "b"},]', "line 2"),
        ('{"x": NaN, "annotations": [{"image_id": 7, "caption": "a"}]}', "NaN is not JSON"),
        ('[{"image_id": 7, "caption": "a"}, {"image_id": 8}]', "entry 1: key 'caption' is absent"),
        ('[{"image_id": 7, "caption": "a"}, 5]', r"\[1\] must be an object"),
        (f'[{{"image_id": 7, "caption": "a", "x": [{"1" * 4301}]}}]', "4301"),
    ],
)
def test_faults_are_worded_with_their_places(tmp_path, text, fault):
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(DataError, match=fault):
        model_captions(path)


def test_a_mark_of_ours_in_a_file_is_no_list(tmp_path):
    path = tmp_path / "people.json"
    entries = [{"image_id": 7, "caption": "a dog"}]
    path.write_text(json.dumps({"x": ["list 0"], "annotations": entries}))
    assert human_captions(path)[0] == {"7": ("a dog",)}


def test_the_first_of_two_faults_is_named_whatever_column_it_is_in(tmp_path):
    path = tmp_path / "mine.json"
    entries = [{"image_id": k, "caption": "a dog"} for k in (7, 8, 7, None)]
    entries[2]["caption"] = "a cat"
    path.write_text(json.dumps(entries))
    with pytest.raises(DataError, match="entry 2: image id 7 occurs twice"):
        model_captions(path)


def test_lines_have_their_numbers_in_every_part_of_a_file(tmp_path, monkeypatch):
    path = tmp_path / "mine.jsonl"
    lines = [json.dumps({"image_id": k, "caption": "a dog"}) for k in range(9)]
    lines.insert(4, "")
    lines[7] = lines[7].replace('"a dog"', "5")
    path.write_text("\n".join(lines))
    monkeypatch.setattr("bias_pipeline.data.tables._AT_ONCE", 40)
    assert [number for number, _ in rows(path)] == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    with pytest.raises(DataError, match="line 8: 'caption' must be text, found 5"):
        model_captions(path)


def test_blocks_are_as_long_as_they_may_be(tmp_path, monkeypatch):
    path = tmp_path / "instances.json"
    images = [{"id": k, "file_name": f"{k}.jpg"} for k in range(5)]
    annotations = [{"image_id": k % 5, "category_id": 1 + k % 2} for k in range(9)]
    categories = [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    path.write_text(json.dumps(whole))
    monkeypatch.setattr(json_columns, "ROWS", 2)
    objects = objects_by_id(path)
    assert list(objects) == ["0", "1", "2", "3", "4"]
    assert [sorted(objects[image]) for image in "04"] == [["cat", "dog"], ["dog"]]


@pytest.mark.parametrize("key", ["sample", "\\u0073ample", "s\\u0061mple"])
def test_numbers_of_samples_are_found_however_the_key_is_written(tmp_path, key):
    rows = [f'{{"image_id": 7, "caption": "{n}", "{key}": {n}, "decoding": "x"}}' for n in (0, 1)]
    path = tmp_path / "mine.json"
    path.write_text(f"[{', '.join(rows)}]")
    assert sample_numbers(path, Layout()) == [0, 1]
    path.write_text('[{"image_id": 7, "caption": "a sample"}]')
    assert sample_numbers(path, Layout()) == [0]


@pytest.mark.parametrize("many", [1, 1 << 14])
def test_images_and_captions_are_numbered_alike_by_array_and_one_by_one(
    tmp_path, monkeypatch, many
):
    monkeypatch.setattr(tables, "_MANY", many)
    ids = [9, 7, 9, 8, 7]
    notes = [{"id": 50 - k, "image_id": i, "caption": f"a dog {k}"} for k, i in enumerate(ids)]
    images = [{"id": i, "file_name": f"{i}.jpg"} for i in (7, 6)]
    marks = [{"image_id": i, "category_id": 1 + k % 2} for k, i in enumerate(ids)]
    categories = [{"id": 1, "name": "hot dog"}, {"id": 2, "name": "cat"}]
    path = tmp_path / "people.json"
    path.write_text(json.dumps({"images": images, "annotations": notes}))
    captions = human_captions(path)[0]
    assert list(captions) == ["9", "7", "8"]
    assert captions["9"] == ("a dog 2", "a dog 0")
    path.write_text(json.dumps({"images": images, "annotations": marks, "categories": categories}))
    objects = objects_by_id(path)
    assert list(objects) == ["7", "6", "9", "8"]
    assert objects == {"7": {"hot dog", "cat"}, "6": set(), "9": {"hot dog"}, "8": {"cat"}}


def test_the_first_unknown_category_is_named(tmp_path):
    marks = [{"image_id": 7, "category_id": number} for number in (1, 5, 4)]
    path = tmp_path / "objects.json"
    whole = {"images": [{"id": 7}], "annotations": marks, "categories": [{"id": 1, "name": "dog"}]}
    path.write_text(json.dumps(whole))
    with pytest.raises(DataError, match="annotations entry 1: category_id 5 is not among"):
        objects_by_id(path)
