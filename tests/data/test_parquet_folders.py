"""Folders of Parquet files: parts are read as one file, and faults name the part and its row."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bias_pipeline.data import binary_tables
from bias_pipeline.data.coco_files import human_captions, model_captions, objects_by_id
from bias_pipeline.errors import DataError
from tests.coco_folder import results, write_folder
from tests.data.test_parquet_files import captions, load


def write_parts(folder: Path, names: Sequence[str], **columns: Sequence[object]) -> Path:
    """Write columns as Parquet files of equal size."""
    folder.mkdir()
    columns = columns or captions()
    size = len(next(iter(columns.values()))) // len(names)
    for k, name in enumerate(names):
        rows = {key: values[k * size : (k + 1) * size] for key, values in columns.items()}
        pq.write_table(pa.table(rows), folder / name)
    return folder


def parts(n: int) -> list[str]:
    return [f"train-{k}-of-{n}.parquet" for k in range(n)]


def test_parts_are_read_as_one_file_in_the_order_of_their_numbers(tmp_path):
    folder = write_parts(tmp_path / "mine", parts(12))
    (folder / "_SUCCESS").touch()
    (folder / "._SUCCESS.crc").write_bytes(b"crc")
    expected = {str(row["image_id"]): row["caption"] for row in results(60)}
    assert list(model_captions(folder).captions.items()) == list(expected.items())


def test_a_corpus_of_parts_is_the_corpus_of_the_whole_file(tmp_path):
    write_folder(tmp_path / "coco")
    whole = write_parts(tmp_path / "one", ["mine.parquet"]) / "mine.parquet"
    folder = write_parts(tmp_path / "mine", parts(4))
    corpora = [load(tmp_path / "coco", f"captioner={path}") for path in (whole, folder)]
    assert corpora[0].digest == corpora[1].digest
    assert corpora[1].captioner == "mine"


def test_human_captions_and_objects_may_be_in_parts(tmp_path):
    people = write_parts(
        tmp_path / "people",
        ["0.parquet", "1.parquet"],
        image_id=[1, 2, 1, 3],
        caption=["a man", "a dog", "a boy", "a cat"],
    )
    assert human_captions(people)[0] == {
        "1": ("a man", "a boy"),
        "2": ("a dog",),
        "3": ("a cat",),
    }
    objects = write_parts(
        tmp_path / "objects",
        ["0.parquet", "1.parquet"],
        image_id=[1, 2, 1, 3],
        category=["dog", "cat", "cat", "dog"],
    )
    assert objects_by_id(objects) == {"1": {"dog", "cat"}, "2": {"cat"}, "3": {"dog"}}


def test_a_faulty_row_is_named_by_its_part_and_its_number_there(tmp_path):
    folder = write_parts(
        tmp_path / "mine",
        parts(2),
        image_id=["1", "2", "3", "3"],
        caption=["a man", "a dog", "a cat", "a boy"],
    )
    with pytest.raises(DataError, match=r"train-1-of-2\.parquet, row 1: image id 3 occurs twice"):
        model_captions(folder)


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        (
            {"image_id": ["7"], "caption": ["a dog"]},
            r"b-1\.parquet: column 'image_id' is string, and int64 in b-0\.parquet; write all",
        ),
        (
            {"image_id": [7], "text": ["a dog"]},
            r"b-1\.parquet: column 'caption' is absent, and b-0\.parquet has it; write all",
        ),
    ],
)
def test_parts_with_other_columns_are_refused(tmp_path, other, fault):
    folder = write_parts(tmp_path / "b", ["b-0.parquet"])
    pq.write_table(pa.table(other), folder / "b-1.parquet")
    with pytest.raises(DataError, match=fault):
        model_captions(folder)


def test_a_part_that_is_no_parquet_is_named(tmp_path):
    folder = write_parts(tmp_path / "mine", parts(2))
    (folder / "train-1-of-2.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"train-1-of-2\.parquet: not a readable Parquet file"):
        model_captions(folder)


def test_files_that_are_not_parts_of_one_file_are_refused(tmp_path):
    folder = write_parts(
        tmp_path / "data", ["test-0-of-1.parquet", "train-0-of-2.parquet", "train-1-of-2.parquet"]
    )
    names = r"such as test-0-of-1\.parquet, train-0-of-2\.parquet; name one file"
    with pytest.raises(DataError, match=f"not parts of one file, {names}"):
        model_captions(folder)


def test_the_rows_of_all_parts_count_towards_the_limit(tmp_path, monkeypatch):
    folder = write_parts(tmp_path / "mine", parts(3))
    monkeypatch.setattr(binary_tables, "MAX_ROWS", 59)
    with pytest.raises(DataError, match=r"mine: 60 rows are more than the 59"):
        model_captions(folder)


def test_a_part_that_was_added_is_read(tmp_path):
    write_folder(tmp_path / "coco")
    folder = write_parts(tmp_path / "mine", parts(2))
    words = (f"captioner={folder}", "dataset.strict=false")
    both = len(load(tmp_path / "coco", *words).model)
    moved = (folder / parts(2)[1]).rename(tmp_path / "moved.parquet")
    assert len(load(tmp_path / "coco", *words).model) == both / 2
    moved.rename(folder / parts(2)[1])
    assert len(load(tmp_path / "coco", *words).model) == both
