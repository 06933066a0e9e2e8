"""Reads JSON, JSON Lines, CSV, Parquet and .xlsx files as rows, kept in blocks by column.

A JSON object may stand for a list: a list under some key, or a mapping of image ids.
"""

from __future__ import annotations

import reprlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from io import BytesIO
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeGuard

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.encoding import plain_name_of
from bias_pipeline.corpus.image_ids import canonical_id, plain_ids
from bias_pipeline.data.binary_tables import (
    file_of,
    is_saved,
    parquet_blocks,
    saved_blocks,
    sheet_blocks,
)
from bias_pipeline.data.blocks import Block, blocks_of
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.csv_tables import MAX_BYTES, csv_blocks
from bias_pipeline.data.file_names import listed_names
from bias_pipeline.data.foreign_files import way_to_read
from bias_pipeline.data.json_columns import ObjectColumns, lines_as_columns, load_lists
from bias_pipeline.data.json_tables import list_within, rows_of_columns, rows_of_mapping
from bias_pipeline.data.parquet_folders import is_parquet_folder, parquet_files
from bias_pipeline.data.printed_texts import (
    NotWholeError,
    any_printed,
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
from bias_pipeline.errors import DataError, ResourceError, did_you_mean, inflect
from bias_pipeline.io.json_files import decode, expect, open_input, parse_json

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xlsx")

_SHOWN = 80  # characters of a faulty line
_FILES = 8  # files of a folder, in a message
_AT_ONCE = 1 << 26  # bytes of JSON Lines
_MANY = 1 << 14  # rows from which on importing pandas pays


@dataclass(frozen=True)
class Rows:
    """The rows of one file, read lazily."""

    path: Path  # the file
    unit: str  # what a row is called in messages: `entry`, `line` or `row`
    columns: Sequence[str] | None  # the columns of a table; None if each row has its own keys
    blocks: Iterator[Block]  # can be iterated once
    shape: str = ""  # how the file deviates from its format; empty if it does not
    people: str = ""  # the column of human captions in a captioner's file, or empty
    # By column, how many cells were printed lists; filled while reading
    printed: Counter[str] = field(default_factory=Counter)
    # By label as written and as meant, how many cells have it; filled while reading
    mended: Counter[tuple[str, str]] = field(default_factory=Counter)
    # The file's own numbers of images, from its list of images, to the names of their files
    names: Mapping[str, str] = field(default_factory=dict)
    # The first row of each file of a folder, if the rows are those of several files
    starts: Sequence[tuple[int, Path]] = ()

    @property
    def items(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        return chain.from_iterable(block.rows() for block in self.blocks)

    def read(self, *readings: Callable[[Block], Any]) -> Iterator[tuple[Any, ...]]:
        """The functions' results for each block.

        A faulty block is read again row by row. So the error names the first faulty row, and comes
        after the notes on earlier rows.
        """
        for block in self.blocks:
            try:
                read = [reading(block) for reading in readings]
            except DataError:
                for place in range(len(block)):
                    row = block.take([place])
                    yield row, *(reading(row) for reading in readings)
            else:
                yield block, *read

    def refuse(self, number: int, fault: str) -> NoReturn:
        """Raise the DataError for a fault of one row."""
        path = self.path
        if self.starts:
            first, path = self.starts[bisect_right(self.starts, number, key=itemgetter(0)) - 1]
            number -= first
        raise DataError(f"{path}, {self.unit} {number}: {fault}")

    def has(self, *names: str) -> bool:
        """Whether the table declares all these columns; true if rows have their own keys."""
        return self.columns is None or set(names) <= set(self.columns)

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                hint = did_you_mean(name, self.columns or ())
                raise DataError(f"{self.path}: column {name!r} is absent; {hint}")

    def peek(self) -> tuple[Mapping[str, Any], Rows]:
        """The columns, each with its value in the first row (None if unknown), and all rows."""
        block = next(self.blocks, None)
        declared = dict.fromkeys(self.columns or ())
        if block is None:
            return declared, replace(self, blocks=iter(()))
        return {**declared, **block.first_row}, replace(self, blocks=chain([block], self.blocks))

    def value(self, number: int, row: Mapping[str, Any], name: str) -> Any:
        if name not in row:
            self.refuse(number, f"key {name!r} is absent; found {', '.join(map(str, row))}")
        return row[name]

    def text(self, number: int, row: Mapping[str, Any], name: str) -> str:
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
            return self._read_print(number, cell, name)
        if not isinstance(cell, list | Mapping | bytes):
            return (self.text(number, row, name),)
        try:
            return texts_in(cell)
        except NotWholeError:
            self.refuse(number, f"{name!r} must contain texts, found {str(cell)[:_SHOWN]!r}")

    def captions(self, number: int, row: Mapping[str, Any], name: str) -> Sequence[str]:
        """The captions in one value, which :meth:`texts` reads; null is a blank caption."""
        cell = self.value(number, row, name)
        if isinstance(cell, str) and not may_be_printed(cell):  # most cells of most files
            return (cell,)
        return self.texts(number, {name: "" if cell is None else cell}, name)

    def _read_print(self, number: int, cell: str, name: str) -> Sequence[str]:
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
        """One value as a label; an absent value becomes the empty label."""
        cell = self.value(number, row, name)
        if cell is None or cell != cell:  # NaN: a gap in a table of numbers
            return ""
        if is_whole(cell):  # numbers in a column with a gap
            cell = int(cell)
        if not isinstance(cell, str | int):
            self.refuse(number, f"label {reprlib.repr(cell)} of {name!r} is not text")
        return self._as_intended(str(cell).strip())

    def column(self, block: Block, name: str) -> Sequence[Any]:
        """The values of a column; refused if the rows lack the column."""
        if name not in block.columns:
            self.value(block.numbers[0], block.first_row, name)
        return block.columns[name]

    def ids(self, block: Block, name: str) -> list[str]:
        """The canonical image ids of a column; :meth:`id` reads each id."""
        cells = self.column(block, name)
        plain = plain_ids(cells)
        if plain is not None:
            return plain
        return [
            self.id(n, {name: cell}, name) for n, cell in zip(block.numbers, cells, strict=True)
        ]

    def places(self, block: Block, name: str, index: Mapping[str, int]) -> IntArray:
        """(N,) the place in an index of each id of a column; new ids are added to the index."""
        cells = block.whole_numbers(name) if name in block.columns else None
        if cells is None or len(cells) < _MANY:
            return places_of(self.ids(block, name), index)
        import pandas as pd

        rows, distinct = pd.factorize(cells)
        return places_of(map(str, distinct.tolist()), index)[rows]

    def labels(self, block: Block, name: str) -> list[str]:
        """The labels of a column; :meth:`label` reads each label."""
        cells = self.column(block, name)
        if set(map(type, cells)) != {str}:
            pairs = zip(block.numbers, cells, strict=True)
            return [self.label(number, {name: cell}, name) for number, cell in pairs]
        labels = {cell: self._as_intended(cell.strip(), n) for cell, n in Counter(cells).items()}
        return [labels[cell] for cell in cells]

    def _as_intended(self, text: str, n: int = 1) -> str:
        """Return a label whose spelling is mended; ``n`` cells have this label."""
        if text.isascii():
            return text
        label = plain_name_of(text)
        self.mended[text, label] += n * (label != text)
        return label

    def plain_texts(self, block: Block, name: str) -> Sequence[str] | None:
        """The texts of a column with one text per cell, blank for null.

        None for other columns, whose cells :meth:`captions` reads.
        """
        cells = self.column(block, name)
        kinds = set(map(type, cells))
        if kinds == {str, type(None)}:
            cells, kinds = ["" if cell is None else cell for cell in cells], {str}
        return cells if kinds == {str} and not any_printed(cells) else None

    def note_mended(self, layout: Layout) -> None:
        """Note how many labels had mojibake or hidden signs."""
        changed = {pair: n for pair, n in self.mended.items() if n}
        if changed:
            old, new = next(iter(changed))
            n = inflect(sum(changed.values()), "labels")
            layout.add_note(
                self.path, f"mojibake or hidden signs mended in {n}: {old!r} is read as {new!r}"
            )

    def note_printed(self, layout: Layout) -> None:
        """Note how many cells contained printed lists or mappings whose texts were read."""
        for column, n in self.printed.items():
            layout.add_note(
                self.path,
                f"{inflect(n, f'cells of {column!r} are')} printed lists, whose texts are read",
            )

    def id(self, number: int, row: Mapping[str, Any], name: str) -> str:
        """The canonical image id of a row; tables with gaps have 42.0, which becomes 42."""
        try:
            cell = self.value(number, row, name)
            return canonical_id(int(cell) if is_whole(cell) else cell)
        except DataError as error:
            if str(self.path) in str(error):
                raise
            self.refuse(number, str(error))


class Opener(Protocol):
    """Opens a file of rows, as :func:`open_rows` does."""

    def __call__(
        self,
        path: Path,
        *,
        what: str,
        wanted: Sequence[str] | None = None,
        key: str | None = None,
        column: str | None = None,
    ) -> Rows: ...


def places_of(values: Iterable[str], index: Mapping[str, int]) -> IntArray:
    """(N,) the place in an index of each value; new values are added to the index."""
    return np.fromiter(map(index.__getitem__, values), np.int64)


def is_whole(value: object) -> TypeGuard[float | Decimal]:
    """Whether the value is a whole number stored as a decimal, as in tables with gaps."""
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
    """Read a file of rows in the format that its ending names.

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
        shape = f"captions from {inflect(len(text_files(path)), 'files')} .txt"
        return Rows(path, "file", COLUMNS, blocks_of(text_rows(path)), shape)
    if is_parquet_folder(path) or path.suffix.lower() == ".parquet":
        for file in parquet_files(path) if path.is_dir() else [path]:
            open_input(file, what=what, max_bytes=MAX_BYTES).close()
        names, blocks, starts = parquet_blocks(path, wanted)
        return Rows(path, "row", names, blocks, starts=starts)
    if is_saved(path):
        return Rows(path, "row", *saved_blocks(path, wanted))
    suffix = path.suffix.lower()
    if is_json(path):
        return _json_rows(path, what, key, column, wanted)
    if suffix in (".jsonl", ".ndjson"):
        return Rows(path, "line", None, _line_blocks(path, what, wanted))
    if suffix in (".csv", ".tsv"):
        usual = "\t" if suffix == ".tsv" else ","
        names, blocks, shape = csv_blocks(path, what, usual, column, wanted or ())
        return Rows(path, "line", names, blocks, shape)
    if suffix == ".xlsx":
        open_input(path, what=what, max_bytes=MAX_BYTES).close()
        names, blocks, shape = sheet_blocks(path)
        return Rows(path, "row", names, blocks, shape)
    check_not_one_of_many(path)
    raise DataError(
        f"{path}: the ending {suffix!r} is unknown; {did_you_mean(suffix, SUFFIXES)} "
        f"{way_to_read(check_file(path))}"
    )


def _json_rows(
    path: Path, what: str, key: str | None, column: str | None, wanted: Sequence[str] | None
) -> Rows:
    data = load_lists(path, what=what, wanted=wanted)
    if column is not None and not (isinstance(data, dict) and key in data):
        table = rows_of_columns(data, column, wanted or ())
        if table is not None:
            return Rows(path, "entry", None, blocks_of(enumerate(table.rows)), table.shape)
    if not isinstance(data, dict) or (key is None and column is None):
        return Rows(path, "entry", None, entry_blocks(data, path, ""))
    place = list_within(data, path, key=key, mapping=column is not None, what=what)
    if place is None:
        rows = blocks_of(enumerate(rows_of_mapping(data, column or "")))
        return Rows(path, "entry", None, rows, "an object of image ids")
    entries = entry_blocks(data[place], path, place)
    shape = "" if place == key else f"the list under {place!r}"
    names = {} if place == "images" else listed_names(path, data.get("images"))
    return Rows(path, "entry", None, entries, shape, names=names)


def entry_blocks(entries: object, path: Path, place: str) -> Iterator[Block]:
    """The rows of a list that is at some place of a JSON file."""
    if isinstance(entries, ObjectColumns):
        return entries.blocks(0)
    return blocks_of(_entries(expect(entries, list, path, place), path, place))


def _entries(entries: list[Any], path: Path, place: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number in range(len(entries)):
        yield number, expect(entries[number], dict, path, f"{place}[{number}]")
        entries[number] = None  # do not keep a million captions twice


def _line_blocks(path: Path, what: str, wanted: Sequence[str] | None) -> Iterator[Block]:
    """The rows of JSON Lines, without blank lines."""
    first = 1
    with open_input(path, what=what, max_bytes=MAX_BYTES) as handle:
        while data := handle.read(_AT_ONCE) + handle.readline():
            columns = lines_as_columns(data, wanted)
            if columns is not None:
                yield from columns.blocks(first)
            else:
                yield from blocks_of(_lines(data, path, what, first))
            first += data.count(b"\n")


def _lines(
    data: bytes, path: Path, what: str, first: int
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(BytesIO(data), start=first):
        if decode(line, path, what, number).strip():
            value = parse_json(line, path, what=what, first_line=number)
            yield number, expect(value, dict, path, f"line {number}")


def is_json(path: Path) -> bool:
    """Whether a file's ending says that it is JSON."""
    return path.suffix.lower() == ".json"


def check_file(path: Path, key: str | None = None) -> Path:
    """Refuse a missing file, or a folder that cannot be read as a file."""
    if path.is_file() or is_saved(path):
        return path
    if path.is_dir():
        inside = ", ".join(_files_beside(path / "file")[:_FILES]) or "no file"
        raise ResourceError(f"{path} is a folder, which holds {inside}; name one file")
    if path.exists() or str(path) == "-":
        raise ResourceError(
            f"{path} is not a file on disk, and files are read more than once; save what comes "
            "through it as a file, and name this file"
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
