"""Reads lists of objects in JSON as columns, several times as fast as object by object.

Arrow reads a list only if every object has plain values (texts, whole numbers, true, false), so
that a strict reader would read the same. The strict reader reads all other files and reports their
faults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.data.blocks import ROWS, ArrowColumns, Block
from bias_pipeline.data.columns import plain_name
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import MAX_BYTES, MAX_DEPTH, open_input, parse_json

if TYPE_CHECKING:
    from pyarrow import DataType, Table

_MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
_W = rb"[ \t\r\n]*"
# Where a list of objects begins, and where a list without lists of objects in it ends
_LIST = re.compile(
    rb"(?:\A" + _W + rb"|[{,]" + _W + rb'"[^"\\]*"' + _W + rb":" + _W + rb")\[" + _W + rb"(?=\{)"
)
_END = re.compile(rb"\}" + _W + rb"(?=\])")
_BETWEEN = re.compile(_W + rb"," + _W + rb"(?=\{)")
_LONG_NUMBER = re.compile(rb"\d{4300}")  # more digits than Python reads as a whole number
# What every hundredth byte of a file with such a number has
_LONG_PERHAPS = re.compile(rb"\d{43}")
_MOST_LISTS = 8  # lists in a file; a mapping of ids may have a list for each image
_FIRST = 1 << 20  # bytes within which the first object ends
_MOST_DEEP = MAX_DEPTH // 2  # lists within lists
_AT_ONCE = 1 << 24  # bytes of a block of Arrow; no object may be larger


@dataclass(frozen=True)
class ObjectColumns:
    first: Mapping[str, Any]  # the first object
    table: Table  # the wanted columns that every object has

    def blocks(self, first_number: int) -> Iterator[Block]:
        shown: Mapping[str, Any] | None = self.first
        for begin in range(0, self.table.num_rows, ROWS):
            part = self.table.slice(begin, ROWS)
            numbers = range(first_number + begin, first_number + begin + part.num_rows)
            yield Block(numbers, ArrowColumns(part), shown)
            shown = None


def load_lists(path: Path, *, what: str, wanted: Collection[str] | None) -> object:
    """Read a JSON file strictly, with lists of objects as columns if this is possible.

    Such a list is the whole file, or a value of the object that is the whole file.
    """
    with open_input(path, what=what, max_bytes=MAX_BYTES) as handle:
        data = handle.read()
    whole = _with_lists(data, path, wanted)
    return parse_json(data, path, what=what) if whole is None else whole


def _with_lists(data: bytes, path: Path, wanted: Collection[str] | None) -> object:
    """The contents of a file, with lists of objects as columns, or None if this is not possible."""
    apart = lists_apart(data.removeprefix(_MARK), wanted) if _is_utf_8(data) else None
    if apart is None or not apart[1]:
        return None
    rest, lists = apart
    try:
        value = parse_json(rest, path, what="")
    except DataError:  # the reader of the whole file words the fault
        return None
    if value == [*lists]:
        return lists[value[0]]
    values = value if isinstance(value, dict) else {}
    placed = {
        key: lists[part[0]] for key, part in values.items() if part in [[mark] for mark in lists]
    }
    return {**values, **placed} if len(placed) == len(lists) else None


def _is_utf_8(data: bytes) -> bool:
    try:
        data.isascii() or data.decode()
    except UnicodeDecodeError:
        return False
    return True


def lines_as_columns(data: bytes, wanted: Collection[str] | None) -> ObjectColumns | None:
    """The columns of JSON Lines (an object per line), or None if the strict reader must read."""
    n = data.count(b"\n") + (not data.endswith(b"\n"))
    each = data.startswith(b"{") and data.count(b"\n{") == n - 1 and _is_utf_8(data)
    return object_columns(data, n, wanted) if each else None


def lists_apart(
    data: bytes, wanted: Collection[str] | None
) -> tuple[bytes, dict[str, ObjectColumns]] | None:
    """JSON with a mark for each list of objects, and the lists, or None if this is impossible.

    Example:
        >>> rest, lists = lists_apart(b'{"images": [{"id": 7}, {"id": 8}]}', ["id"])
        >>> rest, lists["list 0"].table.to_pydict()
        (b'{"images": ["list 0"]}', {'id': [7, 8]})
    """
    parts: list[bytes] = []
    lists: dict[str, ObjectColumns] = {}
    read = 0
    while begin := _LIST.search(data, read):
        end = _END.search(data, begin.end())
        if end is None or len(lists) == _MOST_LISTS:
            return None
        columns = _columns_of_list(data[begin.end() : end.start() + 1], wanted)
        if columns is None:
            return None
        mark = f"list {len(lists)}"
        lists[mark] = columns
        parts += [data[read : begin.end()], f'"{mark}"'.encode()]
        read = end.end()
    return b"".join([*parts, data[read:]]), lists


def _columns_of_list(objects: bytes, wanted: Collection[str] | None) -> ObjectColumns | None:
    """The columns of objects with commas between them."""
    try:
        head = objects[:_FIRST].decode("utf-8", "replace")
        end = len(head[: json.JSONDecoder().raw_decode(head)[1]].encode())
    except (ValueError, RecursionError):
        return None
    comma = _BETWEEN.match(objects, end)
    several_lines = b"\n" in objects
    n = 1
    if comma:
        between = b"}" + comma[0] + b"{"
        n += objects.count(between)
        objects = objects.replace(between, b"}\n{")
    return object_columns(objects, n, wanted, several_lines=several_lines)


def object_columns(
    objects: bytes, n: int, wanted: Collection[str] | None, *, several_lines: bool = False
) -> ObjectColumns | None:
    """The columns of ``n`` objects with line ends between them; None if their values are not plain.

    Example:
        >>> object_columns(b'{"id": 7}' + bytes([10]) + b'{"id": 8}', 2, None).table.to_pydict()
        {'id': [7, 8]}
        >>> object_columns(b'{"id": 7, "id": 8}', 1, None)
    """
    import pyarrow as pa
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    if b"NaN" in objects or b"Infinity" in objects:
        return None
    try:
        table = read_json(
            pa.BufferReader(objects),
            ReadOptions(use_threads=False, block_size=_AT_ONCE),
            ParseOptions(newlines_in_values=several_lines),
        )
        first = json.JSONDecoder().raw_decode(objects[:_FIRST].decode("utf-8", "replace"))[0]
        names = _plain_columns(table, wanted) if table.num_rows == n else None
    except (pa.ArrowException, ValueError, RecursionError):
        return None
    if not names or (len(names) < table.num_columns and _has_long_number(objects)):
        return None
    return ObjectColumns(first, table.select(names))


def _has_long_number(objects: bytes) -> bool:
    return bool(_LONG_PERHAPS.search(objects[::100]) and _LONG_NUMBER.search(objects))


def _plain_columns(table: Table, wanted: Collection[str] | None) -> list[str] | None:
    """The columns of plain values, or None if a wanted column has other values or gaps."""
    import pyarrow as pa

    names = []
    known = None if wanted is None else {plain_name(name) for name in wanted}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        plain = pa.types.is_int64(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
        if plain and not column.null_count:
            names.append(name)
        elif known is None or plain_name(name) in known or not _is_flat(kind):
            return None
    return names


def _is_flat(kind: DataType) -> bool:
    """Whether values of a type contain no objects and no deeply nested lists."""
    import pyarrow as pa

    for _ in range(_MOST_DEEP):
        if not pa.types.is_list(kind):
            return not pa.types.is_struct(kind)
        kind = kind.value_type
    return False
