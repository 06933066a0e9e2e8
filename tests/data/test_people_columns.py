"""Several human captions side by side in one line of a table."""

from pathlib import Path

import pytest

from bias_pipeline.data.coco_files import human_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.errors import DataError

CAPTIONS = ["a man", "a boy with a dog", "someone"]


def table(folder: Path, heads: list[str], *rows: list[str]) -> Path:
    path = folder / "people.csv"
    path.write_text("\n".join(",".join(line) for line in [heads, *rows]) + "\n")
    return path


@pytest.mark.parametrize("stem", ["cap", "caption", "Caption ", "caption_", "human", "ref", "text"])
def test_numbered_columns_are_captions_in_the_order_of_their_numbers(tmp_path, stem):
    heads = ["image_id", *(f"{stem}{k}" for k in (2, 1, 10))]
    path = table(tmp_path, heads, ["7", CAPTIONS[1], CAPTIONS[0], CAPTIONS[2]])
    assert human_captions(path) == ({"7": tuple(CAPTIONS)}, 0)


def test_empty_cells_are_no_captions(tmp_path):
    path = table(tmp_path, ["image_id", "cap1", "cap2"], ["7", "a man", ""], ["8", "", "a dog"])
    assert human_captions(path)[0] == {"7": ("a man",), "8": ("a dog",)}


@pytest.mark.parametrize("names", [("cap1", "cap2"), ("cap01", "cap02")])
def test_parquet_and_json_have_them_too(tmp_path, names):
    import pandas as pd

    first, second = names
    frame = {"image_id": [7, 8], first: ["a man", "a dog"], second: ["a boy", None], "size": [3, 4]}
    pd.DataFrame(frame).to_parquet(path := tmp_path / "people.parquet")
    assert human_captions(path)[0] == {"7": ("a man", "a boy"), "8": ("a dog",)}
    pd.DataFrame(frame).to_json(path := tmp_path / "people.json", orient="records")
    assert human_captions(path)[0] == {"7": ("a man", "a boy"), "8": ("a dog",)}


def test_how_they_were_read_is_told(tmp_path):
    layout = Layout()
    human_captions(table(tmp_path, ["image_id", "cap1", "cap2"], ["7", "a", "b"]), layout)
    assert layout.notes() == ["people.csv: human captions from 2 columns, 'cap1' and so on"]


def test_a_plain_column_counts_before_numbered_ones(tmp_path):
    path = table(tmp_path, ["image_id", "caption", "cap1", "cap2"], ["7", "a man", "x", "y"])
    assert human_captions(path)[0] == {"7": ("a man",)}


def test_one_numbered_column_alone_is_not_guessed(tmp_path):
    with pytest.raises(DataError, match="--human-caption-column COLUMN"):
        human_captions(table(tmp_path, ["image_id", "cap1"], ["7", "a man"]))
