"""Parquet files: what is asked for is read, once, and nothing that does not fit."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data import binary_tables
from bias_pipeline.data.coco_files import human_captions, model_captions, splits_by_id
from bias_pipeline.data.label_files import WHAT
from bias_pipeline.data.tables import open_rows
from bias_pipeline.errors import DataError
from tests import composed
from tests.coco_folder import results, write_folder
from tests.corpora import REPOSITORY


def captions(n: int = 60) -> dict[str, list[object]]:
    return {key: [row[key] for row in results(n)] for key in ("image_id", "caption")}


def load(root: Path, *words: str) -> Corpus:
    return composed.corpus("dataset=coco", f"dataset.root={root}", *words)


def test_two_columns_of_one_name_are_refused(tmp_path):
    item, path = captions(), tmp_path / "twice.parquet"
    arrays = [*map(pa.array, item.values()), pa.array(["a man"] * 60)]
    pq.write_table(pa.Table.from_arrays(arrays, ["image_id", "caption", "caption"]), path)
    with pytest.raises(DataError, match=r"twice\.parquet: column 'caption' occurs twice"):
        model_captions(path)


def test_a_date_out_of_range_in_another_column_does_not_matter(tmp_path):
    path = tmp_path / "dated.parquet"
    dates = pa.array([2**62] * 60, pa.timestamp("ms"))
    pq.write_table(pa.table({**captions(), "made": dates}), path)
    assert len(model_captions(path)[0]) == 60


def test_a_date_out_of_range_as_caption_is_refused(tmp_path):
    path = tmp_path / "dated.parquet"
    dates = pa.array([2**62] * 60, pa.timestamp("ms"))
    pq.write_table(pa.table({**captions(), "caption": dates}), path)
    with pytest.raises(DataError, match=r"dated\.parquet"):
        model_captions(path)


def test_labels_in_parquet_keep_the_parts_of_their_images(tmp_path):
    root = write_folder(tmp_path)
    lines = [str(row["image_id"]) for row in results()]
    table = {"id": lines, "bb_gender": ["Male", "Female"] * 30, "split": ["val", "test"] * 30}
    pq.write_table(
        pa.table({**table, "made": pa.array([2**62] * 60, pa.timestamp("ms"))}),
        tmp_path / "labels.parquet",
    )
    words = (
        f"dataset.attributes={tmp_path}/labels.parquet",
        f"dataset.captioners={root}/captioners",
    )
    assert (
        len(load(root, *words, "captioner=mine", "dataset.split=val", "dataset.strict=false")) == 30
    )


_PEAK = """
import resource, sys
from pathlib import Path
from bias_pipeline.data.coco_files import model_captions
import pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    model_captions(Path(sys.argv[1]))
except Exception as error:
    print(error, file=sys.stderr)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def peak(path: Path) -> tuple[int, str]:
    """Kibibytes that reading a file took, and the refusal."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30)),
    )
    return int(done.stdout), done.stderr


def test_a_column_that_nobody_asked_for_takes_no_memory(tmp_path):
    path = tmp_path / "swells.parquet"
    more = pa.DictionaryArray.from_arrays([0] * 2000, ["x" * (1 << 20)])
    pq.write_table(pa.table({**captions(2000), "more": more}), path, compression="zstd")
    assert path.stat().st_size < 200_000
    taken, refusal = peak(path)
    assert (taken < 300 << 10, refusal) == (True, "")


@pytest.mark.slow
def test_captions_that_swell_are_refused_within_the_memory_that_is_told(tmp_path):
    path = tmp_path / "swells.parquet"
    texts = pa.DictionaryArray.from_arrays([0] * 6000, ["x " * (1 << 19)])
    pq.write_table(pa.table({"image_id": list(range(6000)), "caption": texts}), path)
    assert path.stat().st_size < 200_000
    taken, refusal = peak(path)
    assert taken < 4 << 20  # what is kept is a gigabyte of text at most
    assert "1,073,741,824 characters" in refusal


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_large_file_with_too_much_text_is_refused_before_its_rows_are_read(
    tmp_path, monkeypatch, dictionary
):
    """20 million rows took 90 seconds. Texts that are not read do not count."""
    path = tmp_path / "many.parquet"
    table = pa.table({**captions(), "notes": ["x" * 10_000] * 60})
    pq.write_table(table, path, use_dictionary=dictionary, row_group_size=7)
    monkeypatch.setattr(binary_tables, "_MANY", 59)
    n_characters = sum(map(len, captions()["caption"]))
    monkeypatch.setattr(binary_tables, "MAX_TEXT", n_characters)
    assert len(model_captions(path).captions) == 60
    monkeypatch.setattr(binary_tables, "MAX_TEXT", n_characters - 1)
    monkeypatch.setattr(binary_tables, "blocks_of_batches", lambda *_: pytest.fail("rows are read"))
    with pytest.raises(DataError, match=r"goes beyond the [\d,]+ characters"):
        model_captions(path)


def test_a_broken_page_is_refused(tmp_path):
    path = tmp_path / "broken.parquet"
    pq.write_table(pa.table(captions()), path, write_page_checksum=False)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"broken\.parquet: not a readable Parquet file"):
        model_captions(path)


def test_columns_that_are_not_read_are_known_by_name(tmp_path):
    path = tmp_path / "m.parquet"
    pq.write_table(pa.table(captions()), path)
    rows = open_rows(path, what=WHAT, wanted=("caption",))
    assert (rows.columns, list(next(rows.items)[1])) == (["image_id", "caption"], ["caption"])


def test_a_table_of_parts_goes_by_image_id(tmp_path):
    path = tmp_path / "parts.csv"
    path.write_text("cocoid,image_id,split\n1,7,val\n")
    assert splits_by_id(path) == {"7": "val"}


def test_long_annotation_ids_do_not_collide(tmp_path):
    ids = ["1" * 18 + end for end in "89"]
    path = tmp_path / "human.json"
    path.write_text(
        json.dumps([{"id": i, "image_id": 7, "caption": f"a dog {i[-1]}"} for i in ids])
    )
    assert human_captions(path)[0] == {"7": ("a dog 8", "a dog 9")}


def test_an_annotation_id_of_a_megabyte_is_refused(tmp_path):
    path = tmp_path / "human.json"
    path.write_text(json.dumps([{"id": "1" * 10**6, "image_id": 7, "caption": "a dog"}]))
    with pytest.raises(
        DataError, match=r"human\.json, entry 0: annotation id 1+\.\.\. has 1,000,000"
    ):
        human_captions(path)
