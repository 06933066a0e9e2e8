"""Reads JSON, JSON Lines, CSV, Parquet and .xlsx files as rows: one mapping at a time.

A JSON object may stand for a list: a list under some key, or a mapping of image ids.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

from bias_pipeline.corpus.encoding import plain_name_of
from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.data.binary_tables import (
    file_of,
    is_saved,
    parquet_rows,
    saved_rows,
    sheet_rows,
)
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.csv_tables import MAX_BYTES, csv_rows
from bias_pipeline.data.file_names import listed_names
from bias_pipeline.data.foreign_files import way_to_read
from bias_pipeline.data.json_tables import list_within, rows_of_columns, rows_of_mapping
from bias_pipeline.data.printed_texts import (
    NotWholeError,
    may_be_printed,
    printed_texts,
    texts_in,
)
from bias_pipeline.data.text_folders import (
    COLUMNS,
    check_not_one_of_many,
    is_text_folder,
    text_files,
    text_rows,
)
from bias_pipeline.errors import DataError, ResourceError, counted, did_you_mean
from bias_pipeline.io.json_files import expect, load_json, load_json_lines, open_input

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xlsx")

_SHOWN = 80  # characters of a faulty line
_FILES = 8  # of a folder, in a message


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
    # Column to how many of its cells were printed lists; filled while reading
    printed: Counter[str] = field(default_factory=Counter)
    # Label as it is written and as it was meant, to how often they differ; filled while reading
    mended: Counter[tuple[str, str]] = field(default_factory=Counter)
    # The file's own numbers of images, from its list of images, to the names of their files
    names: Mapping[str, str] = field(default_factory=dict)

    def refuse(self, number: int, fault: str) -> NoReturn:
        """Raise the DataError for a fault of one row."""
        raise DataError(f"{self.path}, {self.unit} {number}: {fault}")

    def has(self, *names: str) -> bool:
        """Whether the table declares all these columns; true where rows have their own keys."""
        return self.columns is None or set(names) <= set(self.columns)

    def require(self, *names: str) -> None:
        """Refuse a table that lacks a column."""
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
        """The texts of one value (:func:`~bias_pipeline.data.printed_texts.texts_in`).

        A list may also be printed within a text (``"['a dog']"``).
        """
        cell = self.value(number, row, name)
        if isinstance(cell, str):
            return self._printed(number, cell, name)
        if not isinstance(cell, list | Mapping | bytes):
            return (self.text(number, row, name),)
        try:
            return texts_in(cell)
        except NotWholeError:
            self.refuse(number, f"{name!r} must contain texts, found {str(cell)[:_SHOWN]!r}")

    def captions(self, number: int, row: Mapping[str, Any], name: str) -> Sequence[str]:
        """The captions in one value, as :meth:`texts` reads it; null is a blank caption."""
        cell = self.value(number, row, name)
        if isinstance(cell, str) and not may_be_printed(cell):  # of most files, a million times
            return (cell,)
        return self.texts(number, {name: "" if cell is None else cell}, name)

    def _printed(self, number: int, cell: str, name: str) -> Sequence[str]:
        try:
            texts = printed_texts(cell)
        except NotWholeError as fault:
            self.refuse(
                number,
                f"{name!r} is a print of a list or mapping that {fault}; it begins "
                f"{cell[:_SHOWN]!r}. Write the table as JSON Lines, which keeps lists: "
                "table.to_json('captions.jsonl', orient='records', lines=True)",
            )
        if texts is None:
            return (cell,)
        self.printed[name] += 1
        return texts

    def label(self, number: int, row: Mapping[str, Any], name: str) -> str:
        """One value as a label; an absent one is the empty label."""
        cell = self.value(number, row, name)
        if cell is None or cell != cell:  # NaN: a gap in a table of numbers
            return ""
        if is_whole(cell):  # numbers beside a gap
            cell = int(cell)
        if not isinstance(cell, str | int):
            self.refuse(number, f"label {reprlib.repr(cell)} of {name!r} is not text")
        text = str(cell).strip()
        if text.isascii():
            return text
        label = plain_name_of(text)
        self.mended[text, label] += label != text
        return label

    def note_mended(self, layout: Layout) -> None:
        """Note how many labels had mojibake or hidden signs."""
        changed = {pair: n for pair, n in self.mended.items() if n}
        if changed:
            old, new = next(iter(changed))
            n = counted(sum(changed.values()), "labels")
            layout.add_note(
                self.path, f"mojibake or hidden signs mended in {n}: {old!r} is {new!r}"
            )

    def note_printed(self, layout: Layout) -> None:
        """Note how many cells held printed lists or mappings, of which the texts were read."""
        for column, n in self.printed.items():
            layout.add_note(
                self.path,
                f"{counted(n, f'cells of {column!r} are')} printed lists, whose texts are read",
            )

    def id(self, number: int, row: Mapping[str, Any], name: str) -> str:
        """The canonical image id of a row; 42.0, as tables with gaps have it, is 42."""
        try:
            cell = self.value(number, row, name)
            return canonical_id(int(cell) if is_whole(cell) else cell)
        except DataError as error:
            if str(self.path) in str(error):
                raise
            self.refuse(number, str(error))


def is_whole(value: object) -> TypeGuard[float | Decimal]:
    """Whether it is a whole number that is not stored as one, as in tables with gaps."""
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return isinstance(value, float) and value.is_integer()


def open_rows(
    path: Path,
    *,
    what: str,
    wanted: Sequence[str] | None = None,
    key: str | None = None,
    column: str | None = None,
) -> Rows:
    """Read a file of rows; its ending decides the format.

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
        return _json_rows(path, what, key, column, wanted or ())
    if suffix in (".jsonl", ".ndjson"):
        return Rows(path, "line", None, _lines(path, what))
    if suffix in (".csv", ".tsv"):
        usual = "\t" if suffix == ".tsv" else ","
        names, items, shape = csv_rows(path, what, usual, column, wanted or ())
        return Rows(path, "line", names, items, shape)
    if suffix == ".parquet":
        open_input(path, what=what, max_bytes=MAX_BYTES).close()
        return Rows(path, "row", *parquet_rows(path, wanted))
    if suffix == ".xlsx":
        open_input(path, what=what, max_bytes=MAX_BYTES).close()
        names, items, shape = sheet_rows(path)
        return Rows(path, "row", names, items, shape)
    check_not_one_of_many(path)
    raise DataError(
        f"{path}: the ending {suffix!r} is unknown; {did_you_mean(suffix, SUFFIXES)} "
        f"{way_to_read(check_file(path))}"
    )


def _json_rows(
    path: Path, what: str, key: str | None, column: str | None, wanted: Sequence[str]
) -> Rows:
    data = load_json(path, what=what)
    if column is not None and not (isinstance(data, dict) and key in data):
        table = rows_of_columns(data, column, wanted)
        if table is not None:
            return Rows(path, "entry", None, enumerate(table.rows), table.shape)
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


def is_json(path: Path) -> bool:
    """Whether a file's ending says that it is JSON."""
    return path.suffix.lower() == ".json"


def check_file(path: Path, key: str | None = None) -> Path:
    """Refuse a file that is not there, or a folder that cannot be read as one."""
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
