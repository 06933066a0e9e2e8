"""A JSON object instead of a list: a list under some key, or a mapping of image ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bias_pipeline.datasets.columns import IMAGE, plain_name
from bias_pipeline.errors import DataError

_LISTED = 8


def list_within(
    data: Mapping[str, Any], path: Path, *, key: str | None, mapping: bool, what: str
) -> str | None:
    """The key of the list of rows, None if the object maps ids to values.

    Args:
        data: the file's content.
        path: the file.
        key: the list's key in the format.
        mapping: whether the object may map ids to values.
        what: the format, for messages.

    Raises:
        DataError: if several lists could be meant, or the object is neither.
    """
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
    """A row for each value of a mapping of image ids; several values of an id are several rows.

    Args:
        data: id to a text, to a mapping of columns, or to a list of these.
        name: the column for a text.

    Example:
        >>> list(rows_of_mapping({"7": "a dog", "8": [{"caption": "a cat"}]}, "caption"))
        [{'image_id': '7', 'caption': 'a dog'}, {'image_id': '8', 'caption': 'a cat'}]
    """
    for identifier, value in data.items():
        for item in value if isinstance(value, list) else [value]:
            columns = item if isinstance(item, Mapping) else {name: item}
            yield {IMAGE.name: identifier, **columns}


def _has_rows(value: Any) -> bool:
    """Whether it is a list of mappings with an image id."""
    if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
        return False
    return any(plain_name(str(name)) in IMAGE.names for name in value[0])


def _is_value(value: Any) -> bool:
    """Whether it may be an image's value: a text, columns, or a list of these."""
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    return all(isinstance(item, str | Mapping) for item in items)
