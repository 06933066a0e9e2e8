"""JSON as pandas writes tables: by rows, by columns, or in parts."""

import json
from pathlib import Path

import pandas as pd
import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.data.coco_files import human_captions, model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.label_files import read_labels
from bias_pipeline.errors import DataError

IDS = ["1000.jpg", "1007.jpg", "1014.jpg"]
TEXTS = ["a dog", "a cat", "a man"]
ORIENTS = ["records", "columns", "index", "split", "table"]


def frame(name: str = "image_id", column: str = "caption") -> pd.DataFrame:
    return pd.DataFrame({name: IDS, column: TEXTS, "score": [0.5, 1, 2]})


def read(path: Path) -> tuple[dict[str, str], str]:
    layout = Layout()
    return dict(model_captions(path, layout=layout).captions), " ".join(layout.notes())


@pytest.mark.parametrize("orient", ORIENTS)
@pytest.mark.parametrize("name", ["image_id", "image", "file_name", "id"])
def test_every_orientation_is_read(tmp_path, orient, name):
    path = tmp_path / "mine.json"
    frame(name).to_json(path, orient=orient)
    assert read(path)[0] == dict(zip(IDS, TEXTS, strict=True))


@pytest.mark.parametrize("orient", ["columns", "index", "split", "table"])
@pytest.mark.parametrize("column", ["caption", "generated_text"])
def test_ids_in_the_index_are_read(tmp_path, orient, column):
    path = tmp_path / "mine.json"
    frame(column=column).set_index("image_id").to_json(path, orient=orient)
    assert read(path)[0] == dict(zip(IDS, TEXTS, strict=True))


def test_other_forms(tmp_path):
    path = tmp_path / "mine.json"
    frame().set_index("image_id")["caption"].to_json(path)
    assert read(path)[0] == dict(zip(IDS, TEXTS, strict=True))
    path.write_text(json.dumps(frame().to_dict("list")))
    assert read(path) == (dict(zip(IDS, TEXTS, strict=True)), "mine.json: a table by its columns")
    frame()[["image_id", "caption"]].to_json(path, orient="values")
    assert read(path)[0] == dict(zip(IDS, TEXTS, strict=True))
    people = {"image": ["7.jpg", "8.jpg"], "captions": [["a dog", "a cat"], ["a man"]]}
    path.write_text(json.dumps(people))
    assert human_captions(path)[0] == {"7.jpg": ("a dog", "a cat"), "8.jpg": ("a man",)}


@pytest.mark.parametrize("n_images", [2, 20])  # Arrow reads few lists as columns
def test_ids_map_to_lists_of_objects(tmp_path, n_images):
    captions = {str(image): (f"dog {image}", "a cat") for image in range(n_images)}
    path = tmp_path / "people.json"
    rows = {image: [{"caption": text} for text in texts] for image, texts in captions.items()}
    path.write_text(json.dumps(rows))
    assert human_captions(path)[0] == captions


@pytest.mark.parametrize("orient", ["columns", "index", "split", "records"])
def test_labels_are_read_in_every_orientation(tmp_path, orient):
    table = pd.DataFrame({"id": IDS, "gender": ["male", "female", "male"]})
    path = tmp_path / "labels.json"
    table.to_json(path, orient=orient)
    gender = Attribute("gender", ("male", "female"), {}, {})
    assert list(read_labels(path, "coco", gender, {}).raw) == IDS
    if orient != "records":
        table.set_index("id").to_json(path, orient=orient)
        assert list(read_labels(path, "coco", gender, {}).raw) == IDS


@pytest.mark.parametrize(
    "content",
    [
        [["a dog", "1000.jpg"]],
        [[1000, "a dog", 3]],
        {"image_id": ["7", "8"], "caption": ["a dog"]},
        {"image_id": {"0": 7}, "caption": {"1": "a dog"}},
        {"columns": ["image_id", "caption"], "data": [[7]]},
    ],
)
def test_what_is_no_whole_table_is_refused(tmp_path, content):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"mine\.json"):
        model_captions(path)
