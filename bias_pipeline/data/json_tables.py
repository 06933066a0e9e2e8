"""Reads rows from JSON that is no list of objects: a mapping of ids, or a table by its columns.

``DataFrame.to_json`` writes columns by default (``orient="records"`` writes rows).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bias_pipeline.data.columns import IMAGE, plain_name
from bias_pipeline.data.headings import lacks_heading
from bias_pipeline.data.json_columns import ObjectColumns
from bias_pipeline.errors import DataError

_LISTED = 8


def list_within(
    data: Mapping[str, Any], path: Path, *, key: str | None, mapping: bool, what: str
) -> str | None:
    """The key under which the list of rows is, or None if the object maps ids to values."""
    if key is not None and key in data:
        return key
    lists = [name for name, value in data.items() if _has_rows(value)]
    if len(lists) == 1:
        return lists[0]
    if lists:
        raise DataError(
            f"{path}: it is not clear which list to read: {', '.join(lists[:_LISTED])}; expected "
            f"{what}. Keep one of them"
        )
    if not (mapping and data and all(map(_is_value, data.values()))):
        absent = "the top level must be a list" if key is None else f"key {key!r} is absent"
        keys = ", ".join(map(str, list(data)[:_LISTED])) or "nothing"
        raise DataError(f"{path}: {absent}; found {keys}; expected {what}")
    return None


def rows_of_mapping(data: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    """A row for each value in a mapping of image ids; several values of an id become several rows.

    Example:
        >>> list(rows_of_mapping({"7": "a dog", "8": [{"caption": "a cat"}]}, "caption"))
        [{'image_id': '7', 'caption': 'a dog'}, {'image_id': '8', 'caption': 'a cat'}]
    """
    in_turn = all(name == str(number) for number, name in enumerate(data))  # pandas numbers rows so
    numbered = in_turn and all(map(_has_id, data.values()))
    for identifier, value in data.items():
        for item in _values_of(value):
            columns = item if isinstance(item, Mapping) else {name: item}
            yield columns if numbered else {IMAGE.name: identifier, **columns}


def _has_rows(value: Any) -> bool:
    """Whether the value is a list of mappings with an image id."""
    if isinstance(value, ObjectColumns):
        return _has_id(value.first)
    return isinstance(value, list) and bool(value) and _has_id(value[0])


def _is_value(value: Any) -> bool:
    """Whether this may be the value of an image: a text, null, columns, or a list of these."""
    return all(item is None or isinstance(item, str | Mapping) for item in _values_of(value))


def _values_of(value: Any) -> Sequence[Any]:
    """The values of a list, or the value itself."""
    if isinstance(value, ObjectColumns):
        return [row for block in value.blocks(0) for _, row in block.rows()]
    return value if isinstance(value, list) else [value]


def _has_id(value: object) -> bool:
    return isinstance(value, Mapping) and any(map(_is_id, value))


def _is_id(name: object) -> bool:
    return plain_name(str(name)) in IMAGE.names


class ColumnsTable(NamedTuple):
    """The rows of a table that was written by its columns."""

    rows: Iterator[Mapping[str, Any]]
    shape: str  # how it was written


def rows_of_columns(data: object, column: str, wanted: Sequence[str]) -> ColumnsTable | None:
    """The rows of a table written by its columns, or None for other data.

    Example:
        >>> by_columns = {"image": {"0": "7.jpg"}, "caption": {"0": "a dog"}}
        >>> by_index = {"caption": {"7.jpg": "a dog"}}
        >>> split = {"columns": ["caption"], "index": ["7.jpg"], "data": [["a dog"]]}
        >>> for table in (by_columns, by_index, split, [["7.jpg", "a dog"]]):
        ...     print(list(rows_of_columns(table, "caption", ["caption"]).rows))
        [{'image': '7.jpg', 'caption': 'a dog'}]
        [{'image_id': '7.jpg', 'caption': 'a dog'}]
        [{'image_id': '7.jpg', 'caption': 'a dog'}]
        [{'image_id': '7.jpg', 'caption': 'a dog'}]
    """
    if isinstance(data, list):
        if not data or not all(isinstance(row, list) and len(row) == 2 for row in data):
            return None
        image, text = data[0]
        if not isinstance(text, str) or not lacks_heading([str(image), text], []):
            return None
        return ColumnsTable(
            ({IMAGE.name: image, column: text} for image, text in data),
            f"lists read as {IMAGE.name} and {column}",
        )
    if not isinstance(data, dict) or not data:
        return None
    if {"columns", "data"} <= data.keys():
        return _split(data)
    columns = list(data.values())
    if any(map(_is_id, data)):
        is_table = _are_mappings(columns) or _are_lists(columns)
        return (
            ColumnsTable(_zip_columns(data, ids=None), "a table by its columns")
            if is_table
            else None
        )
    known = {plain_name(name) for name in wanted}
    if _are_mappings(columns) and any(plain_name(name) in known for name in data):
        return ColumnsTable(_zip_columns(data, ids=list(columns[0])), "columns that map image ids")
    return None


def _split(data: Mapping[str, Any]) -> ColumnsTable | None:
    """A table as names of columns, an index and lists of cells."""
    names, rows = data["columns"], data["data"]
    index = data.get("index", [None] * len(rows)) if isinstance(rows, list) else None
    if not isinstance(names, list) or not isinstance(index, list) or len(index) != len(rows):
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    indexed = not any(map(_is_id, names)) and "index" in data
    return ColumnsTable(
        (
            {**({IMAGE.name: place} if indexed else {}), **dict(zip(names, row, strict=True))}
            for place, row in zip(index, rows, strict=True)
        ),
        "a table with the names of its columns apart",
    )


def _are_mappings(columns: Sequence[Any]) -> bool:
    return all(isinstance(c, Mapping) and c.keys() == columns[0].keys() for c in columns)


def _are_lists(columns: Sequence[Any]) -> bool:
    """Whether all columns are lists of the same length that contain no mappings."""
    return all(
        isinstance(column, list)
        and len(column) == len(columns[0])
        and not any(isinstance(cell, Mapping) for cell in column)
        for column in columns
    )


def _zip_columns(
    data: Mapping[str, Any], ids: Collection[str] | None
) -> Iterator[Mapping[str, Any]]:
    """The rows of columns; ids are added if no column has ids."""
    first = next(iter(data.values()))
    places = list(first) if isinstance(first, Mapping) else range(len(first))
    for place, identifier in zip(places, ids or places, strict=True):
        row = {name: column[place] for name, column in data.items()}
        yield row if ids is None else {IMAGE.name: identifier, **row}
