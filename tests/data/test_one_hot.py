"""Labels in a column for each group."""

import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.data.columns import Layout, label_words
from bias_pipeline.data.label_files import Labels, NoLabelColumnError, read_labels
from bias_pipeline.errors import DataError

GENDER = Attribute("gender", ("male", "female"), {}, {})
IDS = [1, 2, 3, 4]
MALE, FEMALE = [1, 0, 0, 1], [0, 1, 0, 1]


def read(path: Path, columns: dict[str, Any], layout: Layout | None = None) -> Labels:
    frame = pd.DataFrame({"id": IDS, **columns})
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return read_labels(path, "coco", GENDER, {}, layout=layout)


def groups(labels: Labels) -> list[str | None]:
    return [labels.map.group_of(label) for label in labels.raw.values()]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "names",
    [
        ("male", "female"),
        ("Male", "Female"),
        ("is_male", "is_female"),
        ("gender_male", "gender_female"),
    ],
)
@pytest.mark.parametrize(
    "values", [(0, 1), (-1, 1), (False, True), (0.0, 1.0), ("no", "yes"), (None, 1), ("", "x")]
)
def test_the_one_column_that_says_yes_names_the_group(tmp_path, ending, names, values):
    columns = {
        name: [values[cell] for cell in cells]
        for name, cells in zip(names, (MALE, FEMALE), strict=True)
    }
    layout = Layout()
    labels = read(tmp_path / f"labels.{ending}", columns, layout)
    assert groups(labels) == ["male", "female", None, None]
    assert list(labels.raw.values())[2:] == ["no group", "several groups"]
    assert f"labels of gender from the columns {names[0]!r}, {names[1]!r}" in layout.notes()[0]


@pytest.mark.parametrize(
    ("male", "fault"),
    [
        ([1, -1, 0, 1], "is -1 where others are 0"),
        ([1.0, -1.0, 0.0, 1.0], "is -1 where others are 0"),
        ([0.7, 0, 0, 1], "says neither yes nor no"),
    ],
)
def test_what_is_neither_yes_nor_no_is_refused_with_its_row(tmp_path, male, fault):
    with pytest.raises(DataError, match=rf"labels\.csv, line \d: .* {fault}"):
        read(tmp_path / "labels.csv", {"male": male, "female": FEMALE})


def test_a_column_of_labels_comes_first(tmp_path):
    columns = {"gender": ["male"] * 4, "male": MALE, "female": FEMALE}
    assert groups(read(tmp_path / "labels.csv", columns)) == ["male"] * 4


@pytest.mark.parametrize("values", [(0, 1), (-1, 1), (False, True)])
def test_the_options_for_one_column_of_two_groups_work(tmp_path, values):
    columns = {"Male": [values[cell] for cell in MALE]}
    with pytest.raises(NoLabelColumnError) as error:
        read(tmp_path / "labels.csv", columns)
    words = shlex.split(str(error.value).split("alone, add ")[1].split(";")[0])
    maps = [word.removeprefix("--map=") for word in words[2:] if word != "--map"]
    layout = Layout(label_column=words[1], label_map=label_words(maps))
    labels = read(tmp_path / "labels.csv", columns, layout)
    assert groups(labels) == ["male", "female", "female", "male"]
