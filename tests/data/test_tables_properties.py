"""Files of rows, whatever they hold: what was written is read, or the file is refused by name."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bias_pipeline.data.coco_files import human_captions, model_captions, objects_by_id
from bias_pipeline.data.columns import Layout
from bias_pipeline.errors import DataError

thin = settings(max_examples=100, deadline=None)
captions = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@given(texts=captions, ending=st.sampled_from(["json", "jsonl", "csv", "parquet"]))
@example(texts=["0", "A0A0A0²0A|A"], ending="json")
@example(texts=["A0A0A0²0A|A"], ending="parquet")
@thin
def test_any_caption_is_read_as_it_was_written(folder, texts, ending):
    path, rows = (
        folder / f"m.{ending}",
        [{"image_id": i, "caption": t} for i, t in enumerate(texts)],
    )
    if ending == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["image_id", "caption"])
            writer.writeheader()
            writer.writerows(rows)
    elif ending == "parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        lines = map(json.dumps, rows)
        path.write_text("\n".join(lines) if ending == "jsonl" else json.dumps(rows))
    layout = Layout(separator="none")  # else `a|b` may be two captions, and is asked about
    read = model_captions(path, None, layout)
    assert read.captions == {str(i): text for i, text in enumerate(texts)}


@given(content=junk, reader=st.sampled_from([model_captions, human_captions, objects_by_id]))
@thin
def test_any_json_is_read_or_refused_by_name(folder, content, reader):
    path = folder / "junk.json"
    path.write_text(json.dumps(content))
    assert read_or_refused(reader, path)


@given(
    content=st.binary(max_size=200),
    ending=st.sampled_from(["json", "jsonl", "csv", "tsv", "parquet"]),
)
@thin
def test_any_bytes_are_read_or_refused_by_name(folder, content, ending):
    path = folder / f"bytes.{ending}"
    path.write_bytes(content)
    assert read_or_refused(model_captions, path)


@given(cut=st.integers(min_value=0, max_value=399), ending=st.sampled_from(["json", "jsonl"]))
@thin
def test_a_cut_file_is_refused_or_ends_with_a_whole_record(folder, cut, ending):
    rows = [{"image_id": i, "caption": "a dog"} for i in range(10)]
    text = json.dumps(rows) if ending == "json" else "\n".join(map(json.dumps, rows))
    path = folder / f"cut.{ending}"
    path.write_text(text[:cut])
    assert read_or_refused(model_captions, path)


def read_or_refused(reader: Any, path: Path) -> bool:
    """Whether the file was read, or refused by its name."""
    try:
        reader(path)
    except DataError as error:
        return path.name in str(error)
    return True
