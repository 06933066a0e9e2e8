"""Rows of JSON, JSON Lines, CSV and Parquet files, all read the same way: one mapping at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from bias_pipeline.corpus import canonical_id
from bias_pipeline.datasets.json_files import expect, load_json, load_json_lines, open_input
from bias_pipeline.datasets.parquet_files import parquet_rows
from bias_pipeline.errors import DataError, ResourceError, did_you_mean

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")

MAX_BYTES = 1 << 32
_SHOWN = 80  # characters of a faulty line
_MAX_CELL = 1 << 26  # the csv module's own limit would refuse a caption of 128 KiB


@dataclass(frozen=True)
class Rows:
    """The rows of one file, read as they are asked for.

    Attributes:
        path: the file.
        unit: what a row is called in messages: ``entry``, ``line`` or ``row``.
        columns: the columns that a table declares; None where each row has keys of its own.
        items: number and content of each row; can be gone through once.
    """

    path: Path
    unit: str
    columns: Sequence[str] | None
    items: Iterator[tuple[int, Mapping[str, Any]]]

    def refuse(self, number: int, fault: str) -> NoReturn:
        """Raise the DataError for a fault of one row."""
        raise DataError(f"{self.path}, {self.unit} {number}: {fault}")

    def has(self, *names: str) -> bool:
        """Whether the table declares all these columns; true where rows have their own keys."""
        return self.columns is None or set(names) <= set(self.columns)

    def require(self, *names: str) -> None:
        """Refuse a table that lacks a column.

        Raises:
            DataError: naming the column and those that are there.
        """
        for name in names:
            if not self.has(name):
                found = did_you_mean(name, self.columns or ())
                raise DataError(f"{self.path}: column {name!r} is absent; {found}")

    def value(self, number: int, row: Mapping[str, Any], name: str) -> Any:
        """One value of a row.

        Raises:
            DataError: if the row has no such key.
        """
        if name not in row:
            self.refuse(number, f"key {name!r} is absent; found {', '.join(map(str, row))}")
        return row[name]

    def text(self, number: int, row: Mapping[str, Any], name: str) -> str:
        """One value that must be text.

        Raises:
            DataError: if it is absent or something else.
        """
        found = self.value(number, row, name)
        if not isinstance(found, str):
            self.refuse(number, f"{name!r} must be text, found {str(found)[:_SHOWN]!r}")
        return found

    def id(self, number: int, row: Mapping[str, Any], name: str) -> str:
        """The canonical image id of a row.

        Raises:
            DataError: if it is absent or no id.
        """
        try:
            return canonical_id(self.value(number, row, name))
        except DataError as error:
            if str(self.path) in str(error):
                raise
            self.refuse(number, str(error))


def open_rows(
    path: Path, *, what: str, wanted: Sequence[str] | None = None, key: str | None = None
) -> Rows:
    """Read a file of rows, its format told by its ending.

    Args:
        path: a JSON list of objects, JSON Lines, CSV or TSV with a header, or Parquet.
        what: what it should hold, for messages.
        wanted: the columns that are asked for; where others cost something they are not read.
        key: where a JSON file is one object, the key under which the list may stand too.

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
    suffix = path.suffix.lower()
    if suffix == ".json":
        return Rows(path, "entry", None, _entries(path, what, key))
    if suffix in (".jsonl", ".ndjson"):
        return Rows(path, "line", None, _lines(path, what))
    if suffix in (".csv", ".tsv"):
        return _csv_rows(path, what, "\t" if suffix == ".tsv" else ",")
    if suffix == ".parquet":
        return _parquet_rows(path, what, wanted)
    raise DataError(
        f"{path}: the ending {suffix!r} is unknown; {did_you_mean(suffix, SUFFIXES)} "
        f"Give the file the ending of its format; expected {what}"
    )


def _entries(path: Path, what: str, key: str | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    data = load_json(path, what=what)
    place = ""
    if key is not None and isinstance(data, dict):
        if key not in data:
            raise DataError(
                f"{path}: key {key!r} is absent; found {', '.join(map(str, list(data)[:8]))}; "
                f"expected {what}"
            )
        data, place = data[key], key
    entries = expect(data, list, path, place)
    for number in range(len(entries)):
        yield number, expect(entries[number], dict, path, f"{place}[{number}]")
        entries[number] = None  # a million captions need not be held twice


def _lines(path: Path, what: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, value in load_json_lines(path, what=what, max_bytes=MAX_BYTES):
        yield number, expect(value, dict, path, f"line {number}")


def _csv_rows(path: Path, what: str, delimiter: str) -> Rows:
    lines = _csv_lines(path, what, delimiter)
    _, header = next(lines, (0, []))
    names = [name.strip() for name in header]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}, line 1: column {twice!r} stands twice; rename one")
    return Rows(path, "line", names, _csv_mappings(path, names, lines))


def _csv_mappings(
    path: Path, names: Sequence[str], lines: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, cells in lines:
        if not cells:
            continue  # a blank line
        if len(cells) != len(names):
            shown = ",".join(cells)[:_SHOWN]
            raise DataError(
                f"{path}, line {number}: {len(cells)} cells under {len(names)} columns: {shown!r}; "
                "the file may be cut off, or a text with a comma stands without quotation marks"
            )
        yield number, dict(zip(names, cells, strict=True))


def _csv_lines(path: Path, what: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Cells of each record and the line on which it ends."""
    csv.field_size_limit(_MAX_CELL)
    with open_input(path, what=what, max_bytes=MAX_BYTES) as handle:
        text = io.TextIOWrapper(handle, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: {error}; expected {what}. A quotation mark may "
                "be unclosed, or the file cut off: fetch or make it again"
            ) from error
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, after line {reader.line_num}: not UTF-8 ({error.reason}); "
                f"expected {what}. Save the file as UTF-8"
            ) from error


def _parquet_rows(path: Path, what: str, wanted: Sequence[str] | None) -> Rows:
    open_input(path, what=what, max_bytes=MAX_BYTES).close()
    names, items = parquet_rows(path, wanted)
    return Rows(path, "row", names, items)


def check_file(path: Path, key: str) -> Path:
    """Refuse a file that is not there.

    Raises:
        ResourceError: naming the file and the key that names it.
    """
    if not path.is_file():
        raise ResourceError(
            f"{path} is absent (relative paths start at {Path.cwd()}); "
            f"set {key}=... to where the file lies"
        )
    return path
