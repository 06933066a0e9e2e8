"""Converts published files to Parquet tables, which ``dataset=coco`` reads quickly and safely."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.records import StockCaption
from bias_pipeline.data.coco_files import (
    MARKS,
    human_captions,
    model_captions,
    objects_by_id,
)
from bias_pipeline.data.columns import DECODING, MASKED, Layout
from bias_pipeline.data.file_names import own_numbers
from bias_pipeline.data.tables import Rows
from bias_pipeline.errors import DataError, ResourceError, UsageError, inflect
from bias_pipeline.io.files import replace_file
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.terminal import warn
from bias_pipeline.published.pickles import load_pickle

Table = Mapping[str, Sequence[object]]

_LABELS = ("bb_gender", "bb_skin", "split")
_JSON = "COCO results, COCO captions or COCO instances"


def convert(path: Path, folder: Path) -> list[Path]:
    """Write the tables that a file contains.

    A pickle of LIC gives captions, labels and, if it has them, objects. A JSON file of COCO gives
    one table. An existing file is replaced.
    """
    readers = {".pkl": _from_pickle, ".pickle": _from_pickle, ".json": _from_json}
    if path.suffix not in readers:
        raise UsageError(f"{path}: only {', '.join(readers)} files are converted")
    if not path.is_file():
        raise ResourceError(f"{path} is absent (relative paths start at {Path.cwd()})")
    tables = readers[path.suffix](path)
    return [_write(folder / f"{path.stem}{ending}.parquet", t) for ending, t in tables.items()]


def _from_json(path: Path) -> dict[str, Table]:
    data = load_json(path, what=_JSON)
    if isinstance(data, list):
        captions, _, others, *_ = model_captions(path)
        if others:
            warn(
                f"{path}: the first caption of each image is converted, "
                f"{inflect(others, 'others are')} not"
            )
        columns: dict[str, Sequence[object]] = {}
        for key in (DECODING, MASKED):
            values = {text for row in data if isinstance(text := row.get(key), str)}
            columns |= {key: [*values] * len(captions)} if len(values) == 1 else {}
        return {"": {**_model_table(captions), **columns}}
    expect(data, dict, path, "")
    assert isinstance(data, dict)
    layout = Layout()
    if "categories" in data:
        return {"": _with_names(_object_table(objects_by_id(path, layout)), path, layout)}
    if "annotations" in data:
        return {"": _with_names(_human_table(human_captions(path, layout)[0]), path, layout)}
    raise DataError(f"{path}: is not a list and has no 'annotations'; expected {_JSON}")


def _from_pickle(path: Path) -> dict[str, Table]:
    entries = expect(load_pickle(path), list, path, "")
    checked = [_entry(path, number, entry) for number, entry in enumerate(entries)]
    if not checked:
        raise DataError(f"{path}: holds no entries")
    tables: dict[str, Table] = {}
    if "caption_list" in checked[0]:
        tables[""] = _human_table(_column(path, checked, "caption_list", list))
    elif "pred" in checked[0]:
        tables[""] = _model_table(_column(path, checked, "pred", str))
    else:
        raise DataError(f"{path}, entry 0: neither 'pred' nor 'caption_list' is there")
    labels = {key: _column(path, checked, key, str) for key in _LABELS if key in checked[0]}
    if labels:
        ids = {"id": [entry["img_id"] for entry in checked]}
        tables["_labels"] = ids | {key: list(column.values()) for key, column in labels.items()}
    if "rmdup_object_list" in checked[0]:
        tables["_objects"] = _object_table(_column(path, checked, "rmdup_object_list", list))
    return tables


def _entry(path: Path, number: int, entry: object) -> dict[str, Any]:
    fields = expect(entry, dict, path, f"entry {number}")
    identifier = Rows(path, "entry", None, iter(())).id(number, fields, "img_id")
    return {**fields, "img_id": identifier}


def _column(path: Path, entries: Sequence[Mapping[str, Any]], key: str, kind: type) -> Any:
    """One value of each entry, by the entry's canonical id."""
    values = {}
    for number, entry in enumerate(entries):
        place = f"entry {number}, {key!r}"
        value: Any = expect(entry.get(key), kind, path, place)
        for item in value if isinstance(value, list) else ():
            expect(item, str, path, place)
        values[entry["img_id"]] = value
    if len(values) != len(entries):
        raise DataError(
            f"{path}: {inflect(len(entries) - len(values), 'image ids occur')} twice; "
            "keep one entry of each"
        )
    return values


def _model_table(captions: Mapping[str, str]) -> Table:
    return {"image_id": list(captions), "caption": list(captions.values())}


def _human_table(captions: Mapping[str, Sequence[str]]) -> Table:
    """A line for each caption, with a number that preserves the order of an image's captions."""
    pairs = [(image, text) for image, texts in captions.items() for text in texts]
    marked = [isinstance(text, StockCaption) for _, text in pairs]
    marks = {MARKS[0]: list(map(str, marked))} if any(marked) else {}
    return {
        **marks,
        "id": list(range(len(pairs))),
        "image_id": [image for image, _ in pairs],
        "caption": [text for _, text in pairs],
    }


def _object_table(objects: Mapping[str, Any]) -> Table:
    """A line for each object; an image without objects has one line with an empty object."""
    pairs = [
        (image, name) for image, names in objects.items() for name in (sorted(names) or [None])
    ]
    return {"image_id": [image for image, _ in pairs], "category": [name for _, name in pairs]}


def _with_names(table: Table, path: Path, layout: Layout) -> Table:
    """The table with a column of file names, if the file's image ids are not their numbers."""
    names = own_numbers(layout.names[path])
    if not names:
        return table
    return {**table, "file_name": [names.get(str(image)) for image in table["image_id"]]}


def _write(path: Path, table: Table) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    content = io.BytesIO()
    types = dict.fromkeys(table, pa.string())
    if "id" in table and all(type(value) is int for value in table["id"]):
        types["id"] = pa.int64()
    columns = {key: pa.array(list(table[key]), types[key]) for key in table}
    parquet.write_table(pa.table(columns), content)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content.getvalue())
    except OSError as error:
        raise ResourceError(
            f"cannot write {path}: {error.strerror or error}; choose another folder with --out"
        ) from error
    return path
