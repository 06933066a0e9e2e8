"""Reads JSON, JSON Lines, CSV, Parquet and .xlsx files as rows: one mapping at a time.

A JSON object may stand for a list: a list under some key, or a mapping of image ids.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.datasets.binary_tables import (
    file_of,
    is_saved,
    parquet_rows,
    saved_rows,
    sheet_rows,
)
from bias_pipeline.datasets.columns import IMAGE, plain_name
from bias_pipeline.datasets.file_names import listed_names
from bias_pipeline.datasets.text_folders import (
    COLUMNS,
    check_not_one_of_many,
    is_text_folder,
    text_files,
    text_rows,
)
from bias_pipeline.errors import DataError, ResourceError, counted, did_you_mean
from bias_pipeline.io.json_files import decode, expect, load_json, load_json_lines, open_input

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
    """Whether it may be an image's value: a text, null, columns, or a list of these."""
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    return all(item is None or isinstance(item, str | Mapping) for item in items)


SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xlsx")

MAX_BYTES = 1 << 32
_SHOWN = 80  # characters of a faulty line
_FILES = 8  # of a folder, in a message
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MAX_CELL = 1 << 26  # the csv module's own limit would refuse a caption of 128 KiB


@dataclass(frozen=True)
class Rows:
    """The rows of one file, read lazily."""

    path: Path  # the file
    unit: str  # what a row is called in messages: `entry`, `line` or `row`
    columns: Sequence[str] | None  # the columns of a table; None if each row has its own keys
    # Number and content of each row; can be iterated once
    items: Iterator[tuple[int, Mapping[str, Any]]]
    shape: str = ""  # how the file deviates from its format, empty if it does not
    people: str = ""  # the column of people's captions in a captioner's file, empty if it has none
    # The file's own numbers of images, from its list of images, to the names of their files
    names: Mapping[str, str] = field(default_factory=dict)

    def refuse(self, number: int, fault: str) -> NoReturn:
        """Raise the DataError for a fault of one row."""
        raise DataError(f"{self.path}, {self.unit} {number}: {fault}")

    def has(self, *names: str) -> bool:
        """Whether the table declares all these columns; true where rows have their own keys."""
        return self.columns is None or set(names) <= set(self.columns)

    def require(self, *names: str) -> None:
        """Refuse a table that lacks a column.

        Raises:
            DataError: naming the column and those of the file.
        """
        for name in names:
            if not self.has(name):
                hint = did_you_mean(name, self.columns or ())
                raise DataError(f"{self.path}: column {name!r} is absent; {hint}")

    def peek(self) -> tuple[Mapping[str, Any], Rows]:
        """The columns with the first row's values, None where unknown, and all rows."""
        first = next(self.items, None)
        declared = dict.fromkeys(self.columns or ())
        if first is None:
            return declared, replace(self, items=iter(()))
        return {**declared, **first[1]}, replace(self, items=chain([first], self.items))

    def value(self, number: int, row: Mapping[str, Any], name: str) -> Any:
        """One value of a row."""
        if name not in row:
            self.refuse(number, f"key {name!r} is absent; found {', '.join(map(str, row))}")
        return row[name]

    def text(self, number: int, row: Mapping[str, Any], name: str) -> str:
        """One value that must be text."""
        cell = self.value(number, row, name)
        if not isinstance(cell, str):
            self.refuse(number, f"{name!r} must be text, found {repr(cell)[:_SHOWN]}")
        return cell

    def texts(self, number: int, row: Mapping[str, Any], name: str) -> Sequence[str]:
        """One value that must be a text or a list of texts or of mappings with one text each.

        A list may also be written within a text (``"['a dog']"``).
        """
        cell = self.value(number, row, name)
        listed = _written_list(cell) if isinstance(cell, str) else cell
        if not isinstance(listed, list):
            return (self.text(number, row, name),)
        items = [_only_text(item) for item in listed]
        if not all(isinstance(item, str) for item in items):
            self.refuse(number, f"{name!r} must contain texts, found {str(cell)[:_SHOWN]!r}")
        return [str(item) for item in items]

    def captions(self, number: int, row: Mapping[str, Any], name: str) -> Sequence[str]:
        """The captions in one value, as :meth:`texts` reads it; null is a blank caption."""
        cell = self.value(number, row, name)
        if isinstance(cell, str) and not cell.startswith("["):  # of most files, a million times
            return (cell,)
        items = ["" if item is None else item for item in cell] if isinstance(cell, list) else cell
        return self.texts(number, {name: "" if cell is None else items}, name)

    def id(self, number: int, row: Mapping[str, Any], name: str) -> str:
        """The canonical image id of a row; 42.0, as tables with gaps have it, is 42.

        Raises:
            DataError: if it is absent or no id.
        """
        try:
            cell = self.value(number, row, name)
            whole = isinstance(cell, float) and cell.is_integer()
            return canonical_id(int(cell) if whole else cell)
        except DataError as error:
            if str(self.path) in str(error):
                raise
            self.refuse(number, str(error))


def _written_list(text: str) -> object:
    """The list written in a text as Python or JSON, else the text itself."""
    if not text.startswith(("['", '["')) or not text.endswith(("']", '"]')):
        return text
    try:
        items = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return items if all(isinstance(item, str) for item in items) else text


def _only_text(item: object) -> object:
    """The text of an entry such as ``{"raw": "a dog", "tokens": ["a", "dog"]}``."""
    texts = [v for v in item.values() if isinstance(v, str)] if isinstance(item, dict) else [item]
    return texts[0] if len(texts) == 1 else None


def open_rows(
    path: Path,
    *,
    what: str,
    wanted: Sequence[str] | None = None,
    key: str | None = None,
    column: str | None = None,
) -> Rows:
    """Read a file of rows; its ending decides the format.

    Args:
        path: a JSON list of objects, JSON Lines, CSV or TSV with a header, Parquet, .xlsx, or a
            folder of :mod:`~bias_pipeline.datasets.binary_tables`.
        what: the expected contents, for messages.
        wanted: the needed columns; formats that can skip others do.
        key: if a JSON file is one object, the key of its list of rows; a single list under another
            key is read as well.
        column: the column name for the values of a JSON object that maps image ids to texts.

    Raises:
        DataError: if the ending is unknown or the file is broken (while going through the rows).
        ResourceError: if it is absent or cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "mine.csv")
        ...     _ = path.write_text("image_id,caption" + chr(10) + "7,a dog" + chr(10))
        ...     list(open_rows(path, what="captions").items)
        [(2, {'image_id': '7', 'caption': 'a dog'})]
    """
    path = file_of(path)
    if is_text_folder(path):
        shape = f"captions from {counted(len(text_files(path)), 'files')} .txt"
        return Rows(path, "file", COLUMNS, text_rows(path), shape)
    if is_saved(path):
        return Rows(path, "row", *saved_rows(path, wanted))
    suffix = path.suffix.lower()
    if is_json(path):
        return _json_rows(path, what, key, column)
    if suffix in (".jsonl", ".ndjson"):
        return Rows(path, "line", None, _lines(path, what))
    if suffix in (".csv", ".tsv"):
        return _csv_rows(path, what, "\t" if suffix == ".tsv" else ",")
    if suffix == ".parquet":
        open_input(path, what=what, max_bytes=MAX_BYTES).close()
        return Rows(path, "row", *parquet_rows(path, wanted))
    if suffix == ".xlsx":
        open_input(path, what=what, max_bytes=MAX_BYTES).close()
        return Rows(path, "row", *sheet_rows(path))
    check_not_one_of_many(path)
    raise DataError(
        f"{path}: the ending {suffix!r} is unknown; {did_you_mean(suffix, SUFFIXES)} "
        f"Give the file the ending of its format; expected {what}"
    )


def _json_rows(path: Path, what: str, key: str | None, column: str | None) -> Rows:
    data = load_json(path, what=what)
    if not isinstance(data, dict) or (key is None and column is None):
        return Rows(path, "entry", None, _entries(expect(data, list, path, ""), path, ""))
    place = list_within(data, path, key=key, mapping=column is not None, what=what)
    if place is None:
        rows = enumerate(rows_of_mapping(data, column or ""))
        return Rows(path, "entry", None, rows, "an object of image ids")
    entries = _entries(expect(data[place], list, path, place), path, place)
    shape = "" if place == key else f"the list under {place!r}"
    names = {} if place == "images" else listed_names(path, data.get("images"))
    return Rows(path, "entry", None, entries, shape, names=names)


def _entries(entries: list[Any], path: Path, place: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number in range(len(entries)):
        yield number, expect(entries[number], dict, path, f"{place}[{number}]")
        entries[number] = None  # do not keep a million captions twice


def _lines(path: Path, what: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, value in load_json_lines(path, what=what, max_bytes=MAX_BYTES):
        yield number, expect(value, dict, path, f"line {number}")


def _csv_rows(path: Path, what: str, usual: str) -> Rows:
    _, header = next(_csv_lines(path, what, usual, strict=False), (0, []))
    delimiter = _delimiter(header, usual)
    lines = _csv_lines(path, what, delimiter)
    _, header = next(lines, (0, []))
    names = [name.strip() for name in header]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}, line 1: column {twice!r} occurs twice; rename one")
    shape = "" if delimiter == usual else f"columns separated by {_SEPARATORS[delimiter]}"
    return Rows(path, "line", names, _csv_mappings(path, names, lines), shape)


def _delimiter(header: Sequence[str], usual: str) -> str:
    """The usual delimiter, unless the header is one cell with just one other delimiter."""
    others = [sign for sign in _SEPARATORS if len(header) == 1 and sign in header[0]]
    return others[0] if len(others) == 1 else usual


def _csv_mappings(
    path: Path, names: Sequence[str], lines: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, cells in lines:
        if not cells:
            continue  # a blank line
        if len(cells) != len(names):
            shown = ",".join(cells)[:_SHOWN]
            raise DataError(
                f"{path}, line {number}: {counted(len(cells), 'cells')} under "
                f"{counted(len(names), 'columns')}: {shown!r}; "
                "the file may be cut off, or a text with a comma lacks quotation marks"
            )
        yield number, dict(zip(names, cells, strict=True))


def _csv_lines(
    path: Path, what: str, delimiter: str, *, strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Cells of each record and the line on which it ends; a strict reader refuses stray quotes."""
    csv.field_size_limit(_MAX_CELL)
    with open_input(path, what=what, max_bytes=MAX_BYTES) as handle:
        text = io.TextIOWrapper(handle, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=strict)
        try:
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: {error}; expected {what}. A quotation mark may "
                "be unclosed, or the file cut off: fetch or make it again"
            ) from error
        except UnicodeDecodeError:
            handle.seek(0)
            for number, line in enumerate(handle, start=1):
                decode(line, path, what, number)
            raise


def is_json(path: Path) -> bool:
    """Whether a file's ending says that it is JSON."""
    return path.suffix.lower() == ".json"


def check_file(path: Path, key: str | None = None) -> Path:
    """Refuse a file that is not there, or a folder that cannot be read as one.

    Args:
        path: of the file or folder.
        key: that names it in the configuration; None if it was given as an argument.

    Raises:
        ResourceError: naming the file, the nearest one in its folder and the key; of a folder
            the files in it.
    """
    if path.is_file() or is_saved(path):
        return path
    if path.is_dir():
        inside = ", ".join(_files_beside(path / "file")[:_FILES]) or "no file"
        raise ResourceError(f"{path} is a folder, which holds {inside}; name one file")
    if path.exists() or str(path) == "-":
        raise ResourceError(
            f"{path} is no file on disk, and files are read more than once; save what comes "
            "through it as a file, and name that"
        )
    beside = _files_beside(path)
    near = get_close_matches(path.name, beside, n=1)
    hint = f"did you mean {str(path.with_name(near[0]))!r}? " if near else ""
    listed = ", ".join(beside[:_FILES]) or "no file"
    named = "its folder" if key == "dataset.root" else "the file's path"
    fix = f"set {key}=... to {named}" if key else f"its folder has {listed}"
    raise ResourceError(f"{path} is absent (relative paths start at {Path.cwd()}); {hint}{fix}")


def _files_beside(path: Path) -> list[str]:
    try:
        return sorted(file.name for file in path.parent.iterdir() if file.is_file())
    except OSError:
        return []
