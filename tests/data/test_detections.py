"""Detections in files: what is read, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.data.picture_files import detections_by_id
from bias_pipeline.errors import BiasPipelineError, DataError

ROWS: list[dict[str, Any]] = [
    {"image_id": 7, "label": "dog", "score": 0.5, "bbox": [1, 2, 3, 4]},
    {"image_id": 7, "label": "kite", "score": 0.75, "bbox": [1, 2, 3, 4]},
    {"image_id": "000000000008", "label": "Sports_Ball, ball", "score": 1},
    {"image_id": 7, "label": "dog", "score": 0.25, "bbox": [5, 6, 7, 8]},
]
DETECTED = {"7": (("kite", 0.75), ("dog", 0.5)), "8": (("sports ball", 1.0),)}


def write_table(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def table(separator: str, confidence: str = "score") -> str:
    head = separator.join(["image_id", "label", confidence])
    lines = [
        separator.join([str(row["image_id"]), f'"{row["label"]}"', str(row["score"])])
        for row in ROWS
    ]
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("seen.json", ROWS),
        ("seen.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("seen.csv", table(",")),
        ("seen.tsv", table("\t")),
        ("seen.csv", table(",", "confidence")),
    ],
)
def test_a_label_is_as_sure_as_its_surest_row(name, content, tmp_path):
    assert detections_by_id(write_table(tmp_path, name, content)) == DETECTED


def test_a_category_is_named_by_its_number_at_coco(tmp_path):
    rows = [{"image_id": 7, "category_id": 18, "score": 0.5, "bbox": [1, 2, 3, 4]}]
    assert detections_by_id(write_table(tmp_path, "seen.json", rows)) == {"7": (("dog", 0.5),)}


def test_the_order_of_rows_plays_no_part(tmp_path):
    assert detections_by_id(write_table(tmp_path, "seen.json", ROWS[::-1])) == DETECTED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "  "}, "entry 0: the label is blank; name what was seen"),
        ({"label": 17}, "entry 0: 'label' must be text"),
        ({"score": "sure"}, "entry 0: 'score' is 'sure'; a confidence is a number from 0 to 1"),
        ({"score": 10**400}, "a confidence is a number from 0 to 1"),
        ({"score": 1.5}, "'score' is '1.5'"),
        ({"score": -0.1}, "'score' is '-0.1'"),
        ({"score": None}, "'score' is 'None'"),
        ({"score": True}, "'score' is 'True'"),
        ({"image_id": None}, "entry 0: "),
    ],
)
def test_a_row_that_says_nothing_is_refused(change, message, tmp_path):
    path = write_table(tmp_path, "seen.json", [{**ROWS[0], **change}])
    with pytest.raises(DataError, match=message) as caught:
        detections_by_id(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("seen.json", [{"image_id": 7, "score": 1}], "key 'label' is absent"),
        ("seen.json", [{"image_id": 7, "category_id": 12, "score": 1}], "12 is not one of COCO's"),
        ("seen.json", [{"image_id": 7, "label": "dog"}], "key 'score' is absent"),
        ("seen.csv", "image_id,label\n7,dog\n", "column 'score' is absent"),
        ("seen.csv", "image_id,name,score\n7,dog,1\n", "column 'label' is absent"),
        ("seen.csv", "image_id,label,score\n7,dog\n", "2 cells under 3 columns"),
        ("seen.csv", "image_id,label,label\n7,a,b\n", "column 'label' occurs twice; rename one"),
        ("seen.csv", "image_id,label,score\n", "holds no row"),
        ("seen.json", [], "holds no row"),
        ("seen.json", "[", "seen.json"),
        ("seen.json", [7], "seen.json"),
    ],
)
def test_a_file_that_is_no_table_of_detections_is_refused(name, content, message, tmp_path):
    with pytest.raises(BiasPipelineError, match=message):
        detections_by_id(write_table(tmp_path, name, content))
