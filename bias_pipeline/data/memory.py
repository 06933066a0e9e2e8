"""Writes data in memory to the files that the commands read.

The keys of a mapping are image ids, and so is the index of a pandas Series. Lists are aligned, and
positions are the ids. If the items are rows with an id (``{"image_id": 7, ...}``), this id counts.
A table's ids come from its column of ids, else from pandas' index, else from positions. Data may
also be the path of a file, which is then read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from bias_pipeline.data.frames import (
    IDS,
    FrameColumns,
    has_positions_as_ids,
    is_absent,
    is_column,
    is_frame,
    is_several,
    write_frame,
)
from bias_pipeline.data.label_files import BESIDE
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.paths import group_choices, safe_name

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset
    from pandas import DataFrame, Series

    class ArrowStream(Protocol):
        """A table of polars, Arrow or DuckDB."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    File: TypeAlias = str | Path | DataFrame | ArrowStream | Dataset | IterableDataset
    Captions: TypeAlias = (
        Mapping[Any, str | Sequence[str]]
        | Sequence[str]
        | Sequence[Sequence[str]]
        | Sequence[Mapping[str, Any]]
        | Series
        | File
    )
    Labels: TypeAlias = (
        Mapping[Any, str]
        | Mapping[Any, Mapping[str, str]]
        | Mapping[str, Mapping[Any, str]]
        | Mapping[str, Sequence[str]]
        | Sequence[str]
        | Series
        | File
    )
    Gold: TypeAlias = Mapping[Any, str] | Series | File
    Objects: TypeAlias = Mapping[Any, Iterable[str]] | Sequence[Iterable[str]] | File

Row = Mapping[str, object]


def caption_file(captions: Captions, folder: Path, name: str, id_column: str | None = None) -> Path:
    """Write the file of model captions or human captions, unless they already are in a file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(caption_file({7: "a dog"}, Path(folder), "mine").read_text(), end="")
        {"image_id": 7, "caption": "a dog"}
    """
    columns = FrameColumns("image_id", "caption", id_column)
    return _file(captions, folder / safe_name(str(name)), columns, _caption_rows)


def object_file(objects: Objects, folder: Path, id_column: str | None = None) -> Path:
    columns = FrameColumns("image_id", "category", id_column)
    return _file(objects, folder / "objects", columns, _object_rows)


def label_file(labels: Labels, folder: Path, attribute: str, id_column: str | None = None) -> Path:
    return _file(
        _by_image(labels),
        folder / "labels",
        FrameColumns("id", attribute, id_column),
        lambda key, label: [  # None, NaN and pandas' NA mean that there is no label
            _row("id", key, label if isinstance(label, Mapping) else {attribute: label}, None)
        ],
    )


def gold_file(gold: Gold, folder: Path) -> Path:
    return _file(
        gold,
        folder / "gold",
        FrameColumns("image_id", "value"),
        lambda key, value: [_row("image_id", key, {"value": str(value)}, "")],
    )


def check_aligned(data: Mapping[str, Any], id_column: str | None = None) -> None:
    """Refuse lists, and tables without ids, that differ in length.

    Example:
        >>> check_aligned({"captions": ["a dog", "a cat"], "labels": {7: "male"}})
    """
    sizes = {
        name: len(items)
        for name, items in data.items()
        if has_positions_as_ids(items, id_column)
        or (
            isinstance(items, Sequence | np.ndarray)
            and not isinstance(items, str)
            and not any(isinstance(item, Mapping) and {*IDS} & {*item} for item in items)
        )
    }
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in sizes.items())
        raise UsageError(
            f"the lists differ in length ({listed}); give an item for each image (None if it has "
            "no value), or mappings of image ids"
        )


def _file(
    data: object, stem: Path, columns: FrameColumns, rows_of: Callable[[object, Any], Iterable[Row]]
) -> Path:
    """Write data to a file; ``stem`` is its name without an ending."""
    if isinstance(data, str | Path):
        if not os.path.lexists(data):
            raise ResourceError(
                f"{stem.name}: the file {str(data)!r} is absent (relative paths start at "
                f"{Path.cwd()}); correct the path, or give data: a mapping, a list or a table"
            )
        return Path(data)
    if is_frame(data) or is_column(data):
        if isinstance(data, Mapping):
            parts = ", ".join(map(str, data))
            raise UsageError(f"{stem.name}: the data set has the parts {parts}; give one of them")
        path = stem.with_name(f"{stem.name}.parquet")
        write_frame(data, path, columns)
        return path
    path = stem.with_name(f"{stem.name}.jsonl")
    rows = (
        row for identifier, item in _pairs(data, stem.name) for row in rows_of(identifier, item)
    )
    text = "".join(f"{_json(row, stem.name)}\n" for row in rows)
    if not text:
        left_out = ", or None if there are none" if stem.name in ("human", "objects") else ""
        raise DataError(f"{stem.name}: there is nothing in it; give data of the images{left_out}")
    path.write_text(text)
    return path


def _json(row: Row, name: str) -> str:
    """A row as JSON; NumPy's numbers become Python's numbers."""

    def to_plain(value: object) -> object:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        image = next(iter(row.values()))
        raise UsageError(
            f"{name}, image {image!r}: {value!r} is not a text, a number or a list of them"
        )

    return json.dumps(row, default=to_plain)


def _pairs(data: object, name: str) -> Iterator[tuple[object, object]]:
    if isinstance(data, Mapping) or _is_series(data):
        yield from data.items()
    elif isinstance(data, Iterable) and not isinstance(data, bytes | AbstractSet):
        yield from enumerate(data)
    else:
        raise UsageError(
            f"{name}: give a mapping of image ids, a list, a table or a file, not "
            f"{type(data).__name__}"
        )


def _caption_rows(key: object, captions: object) -> Iterator[Row]:
    """The rows of an image's captions; None, NaN and pandas' NA become a blank caption."""
    for caption in _items_of(captions):
        row = caption if isinstance(caption, Mapping) else {"caption": caption}
        yield _row("image_id", key, row, "")


def _object_rows(key: object, categories: object) -> Iterator[Row]:
    """The rows of an image's objects; None means that the objects are unknown."""
    if isinstance(categories, Mapping):
        row = _row("image_id", key, categories, "")
        for category in [*_items_of(row.get("category", ""))] or [""]:
            yield {**row, "category": category}
    elif not is_absent(categories):
        for category in sorted({*_items_of(categories)}, key=str) or [""]:
            yield {"image_id": key, "category": category}


def _row(name: str, key: object, values: Mapping[str, object], absent: object) -> Row:
    """A row that begins with the id; an id among the values comes first.

    Example:
        >>> _row("id", 0, {"gender": "male", "image_id": 7}, None)
        {'image_id': 7, 'gender': 'male'}
    """
    name = next((one for one in IDS if one in values), name)
    row = {name: key, **values}
    return {str(column): absent if is_absent(one) else one for column, one in row.items()}


def _items_of(item: object) -> Iterable[Any]:
    """The captions or objects of one image, as several items."""
    if not is_several(item):
        return [item]
    return sorted(item, key=str) if isinstance(item, AbstractSet) else item


def _by_image(labels: Labels) -> object:
    """Labels by image.

    A list for each attribute becomes a list for each image, and a mapping for each attribute
    becomes a mapping for each image. Other labels stay as they are. Keys count as attributes if
    they are names of known attributes. Columns of label files, such as ``set``, may occur beside
    attributes.

    Example:
        >>> _by_image({"gender": {7: "male"}, "race": {7: "dark", 8: "light"}})
        {7: {'gender': 'male', 'race': 'dark'}, 8: {'gender': None, 'race': 'light'}}
    """
    if not isinstance(labels, Mapping) or not labels:
        return labels
    attributes = set(labels) - {*BESIDE}
    if (
        attributes
        and attributes <= {*group_choices("attribute")}
        and all(isinstance(one, Mapping) or _is_series(one) for one in labels.values())
    ):
        tables = {name: dict(_pairs(one, name)) for name, one in labels.items()}
        images = dict.fromkeys(image for table in tables.values() for image in table)
        return {
            image: {name: table.get(image) for name, table in tables.items()} for image in images
        }
    columns = {
        name: values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        for name, values in labels.items()
        if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    }
    if len(columns) < len(labels):
        return labels
    if len({len(column) for column in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise UsageError(f"labels: the lists of attributes differ in length: {sizes}")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _is_series(data: object) -> TypeGuard[Series]:
    """Whether the data is a column of a pandas table, with its ids."""
    return hasattr(data, "to_frame") and hasattr(data, "items")
