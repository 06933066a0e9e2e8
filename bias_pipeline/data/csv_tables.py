"""Reads text tables, comma separated or otherwise, as rows.

Quotation marks enclose cells in ``.csv`` (RFC 4180). Tables with tabs have no quoting (Flickr30k,
CC3M), but pandas, Excel and R sometimes write quoting. So the whole file decides.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TextIO

from bias_pipeline.data.blocks import ROWS, ArrowColumns, Block, until_fault
from bias_pipeline.data.columns import IMAGE, plain_name
from bias_pipeline.data.headings import FIRST_ROWS, Heading, find_heading, lacks_heading
from bias_pipeline.errors import DataError, inflect
from bias_pipeline.io.json_files import decode, open_input

MAX_BYTES = 1 << 32
_MOST_AT_ONCE = 1 << 28  # bytes of a file that Arrow reads
_LONGEST_LINE = 1 << 24  # bytes
_SIGNS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_MARKED = 60  # characters, from a mark on, in a message
_SHOWN = 80  # characters of a faulty line
_ENCLOSE = (
    'python -c "import csv, sys; csv.writer(sys.stdout).writerows('
    'csv.reader(sys.stdin, quoting=3{separated}))" < {file} > enclosed.csv'
)
_MAX_CELL = 1 << 26  # the csv module's own limit would refuse a caption of 128 KiB
_ENCLOSED = re.compile(r'"(?:[^"]|"")*+"')
# Signs that need marks around a cell without tabs; only Excel encloses for commas
_NEEDED = ('""', ",")
_LINE_END = re.compile(r"\r\n?|\n")


def encloses_cells(lines: Iterable[str], n_columns: int) -> bool | None:
    r"""Whether marks enclose cells of a table with tabs, or None if its lines do not decide this.

    Marks are text if every line has as many cells as the heading. Otherwise marks enclose cells if
    all marks enclose whole cells and if, in each column, either all cells have marks or only the
    cells that need them.

    Example:
        >>> encloses_cells(["id\tcaption", '7\t"Stop" on a sign'], 2)
        False
        >>> encloses_cells(["id\tcaption", '7\t"a ""big"" dog"'], 2)
        True
        >>> encloses_cells(['"id"\t"caption"', '"7"\t"a dog"'], 2)
        True
    """
    iterator = iter(lines)
    if all_enclosed(next(iterator, ""), "\t"):
        return True
    rows = 0
    enclosed: Counter[int] = Counter()  # cells of each column
    needless: Counter[int] = Counter()  # enclosed cells that need no marks
    for line in iterator:
        rows += not line.isspace()
        if line.strip("\r\n") and line.count("\t") != n_columns - 1:
            return None
        for place, cell in enumerate(line.rstrip("\r\n").split("\t") if '"' in line else ()):
            if '"' not in cell:
                continue
            if not _is_enclosed(cell):
                return False
            enclosed[place] += 1
            needless[place] += not any(sign in cell[1:-1] for sign in _NEEDED)
    return bool(enclosed) and all(enclosed[place] == rows for place in +needless)


def all_enclosed(line: str, separator: str) -> bool:
    """Whether marks enclose every cell of a line, as some programs write.

    Example:
        >>> all_enclosed('"image_id","caption"', ","), all_enclosed('image_id,"caption"', ",")
        (True, False)
    """
    return all(map(_is_enclosed, line.rstrip("\r\n").split(separator)))


def _is_enclosed(cell: str) -> bool:
    return bool(_ENCLOSED.fullmatch(cell))


def fits_quoted(lines: Iterable[str], n_columns: int) -> bool:
    """Whether all rows would be whole, and no cell would contain rows, if marks enclosed cells."""
    try:
        return all(
            not cells
            or (len(cells) == n_columns and not any(_has_rows(c, n_columns) for c in cells))
            for cells in csv.reader(lines, delimiter="\t", strict=True)
        )
    except csv.Error:
        return False


def _has_rows(cell: str, n_columns: int) -> bool:
    return bool(ids_within(cell, "\t", n_columns, 0))


def line_ends(text: str) -> int:
    """The number of line ends, of any system, in a text."""
    return len(_LINE_END.findall(text))


def ids_within(cell: str, separator: str, n_columns: int, place: int) -> list[str]:
    """The ids that begin lines within a cell; an unclosed mark may have swallowed such rows.

    Example:
        >>> ids_within('a 40" tv' + chr(10) + "8,a dog", ",", 2, 0)
        ['8']
    """
    rows = [line.split(separator) for line in _LINE_END.split(cell)[1:]]
    return [cells[place].strip() for cells in rows if len(cells) >= n_columns > 1]


def resembles(identifier: str, other: str) -> bool:
    """Whether two ids are written alike: with digits in the same places, and of similar length.

    Example:
        >>> resembles("1000.jpg", "1007.jpg"), resembles("1000", "7"), resembles("1000", "a dog")
        (True, False, False)
    """
    alike = re.sub(r"\d+", "0", identifier) == re.sub(r"\d+", "0", other)
    return alike and any(map(str.isdigit, other)) and abs(len(identifier) - len(other)) < 2


def unclosed_mark(lines: Sequence[str], separator: str) -> tuple[int, str]:
    """The place of the first mark that does not enclose a cell.

    Example:
        >>> unclosed_mark(['7,"a dog"' + chr(10), '8,"Stop" on a sign' + chr(10)], ",")
        (1, '"Stop" on a sign')
    """
    text = "".join(lines)
    sign = re.escape(separator)
    opening = re.compile(rf'(?:^|(?<={sign})|(?<=[\r\n]))"')
    cell = re.compile(rf'"(?:[^"]|"")*+"(?={sign}|[\r\n]|$)')
    place = 0
    while mark := opening.search(text, place):
        enclosed = cell.match(text, mark.start())
        if enclosed is None:
            shown = _LINE_END.split(text[mark.start() :], maxsplit=1)[0]
            return line_ends(text[: mark.start()]), shown[:_MARKED]
        place = enclosed.end()
    return 0, text[:_MARKED]


if TYPE_CHECKING:
    from pyarrow import Table


def csv_blocks(
    path: Path, what: str, usual: str, column: str | None, wanted: Sequence[str]
) -> tuple[list[str], Iterator[Block], str]:
    with _text_of(path, what) as text:
        lines = list(islice(text, FIRST_ROWS))
    heading = find_heading(lines, usual)
    whole = bool(lines) and all_enclosed(lines[heading.place], heading.separator)
    table = _Table(path, what, heading, whole=whole)
    names = [name.strip() for name in next(table.records(strict=False), (0, []))[1]]
    while names and not names[-1]:
        names.pop()
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"{path}, line {heading.place + 1}: column {twice!r} occurs twice; rename one"
        )
    notes = [heading.note] if heading.note else []
    if heading.separator == "\t":
        marks, note = _marks(path, what, heading, len(names))
        table = replace(table, quoted=marks)
        notes += [note] if note else []
    above = heading.place
    if column is not None and lacks_heading(names, wanted):
        names = [IMAGE.name, column]
        notes.append(f"no heading: read as {IMAGE.name} and {column}")
    else:
        above += 1
    return names, _blocks(table, names, above), ", ".join(notes)


@contextmanager
def _text_of(path: Path, what: str) -> Iterator[TextIO]:
    """The text of a file without a byte order mark; line ends are unchanged."""
    with open_input(path, what=what, max_bytes=MAX_BYTES) as handle:
        try:
            text = io.TextIOWrapper(handle, encoding="utf-8-sig", newline="")
            yield text
        except UnicodeDecodeError:
            handle.seek(0)
            for number, line in enumerate(handle, start=1):
                decode(line, path, what, number)
            raise


def _marks(path: Path, what: str, heading: Heading, n_columns: int) -> tuple[bool, str]:
    """Whether marks enclose the cells of a table with tabs, and a note if it has marks."""
    with _text_of(path, what) as text:
        lines = islice(text, heading.place, None)
        first = next((line for line in lines if '"' in line), None)
    if first is None:
        return False, ""
    with _text_of(path, what) as text:
        quoted = encloses_cells(islice(text, heading.place, None), n_columns)
    if quoted is None:
        with _text_of(path, what) as text:
            quoted = fits_quoted(islice(text, heading.place, None), n_columns)
    return quoted, f"quotation marks {'enclose cells' if quoted else 'are text'}"


class _SwallowedRow(NamedTuple):
    line: int  # the line in which the cell begins
    cell: str


@dataclass(frozen=True)
class _Table:
    path: Path
    what: str  # the expected contents, for messages
    heading: Heading
    whole: bool = False  # whether quotation marks enclose all cells
    quoted: bool = True  # whether they enclose cells

    def records(self, *, strict: bool = True) -> Iterator[tuple[int, list[str]]]:
        """The cells of each record, with the record's last line; ``strict`` refuses stray marks."""
        csv.field_size_limit(_MAX_CELL)
        above = self.heading.place
        with _text_of(self.path, self.what) as text:
            reader = csv.reader(
                islice(text, above, None),
                delimiter=self.heading.separator,
                quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
                strict=strict,
            )
            ended = above
            try:
                for cells in reader:
                    yield (ended := reader.line_num + above), cells
            except csv.Error as error:
                self.refuse_unclosed(ended + 1, reader.line_num + above, str(error))

    def refuse_unclosed(self, first: int, last: int, fault: str) -> NoReturn:
        """Raise the DataError for the first mark in these lines that does not enclose a cell."""
        with _text_of(self.path, self.what) as text:
            lines = list(islice(text, first - 1, last))
        before, shown = unclosed_mark(lines, self.heading.separator)
        self.refuse_mark(
            first + before,
            f"{fault}: a quotation mark opens a cell here, and no mark closes the cell before a "
            f"separator or line end: {shown!r}",
        )

    def refuse_swallowed(self, identifier: str, place: _SwallowedRow) -> NoReturn:
        """Raise the DataError for a cell that holds the row of an image."""
        shown = f'"{place.cell}'[:_MARKED]
        self.refuse_mark(
            place.line,
            f"a quotation mark opens a cell of {line_ends(place.cell) + 1} lines here, which holds "
            f"the row of {identifier}: {shown!r}",
        )

    def refuse_mark(self, line: int, fault: str) -> NoReturn:
        """Raise the DataError for a mark that opens a cell in a line."""
        sign = self.heading.separator
        separated = "" if sign == "," else f", delimiter={sign!r}"
        raise DataError(
            f"{self.path}, line {line}: {fault}. Close the mark. If no cell of the file is "
            "enclosed in marks, enclose them: "
            f"{_ENCLOSE.format(separated=separated, file=shlex.quote(str(self.path)))}"
        )


def _blocks(table: _Table, names: Sequence[str], above: int) -> Iterator[Block]:
    """The rows below the first ``above`` lines; a cell that swallowed rows is refused."""
    columns = _without_marks(table, names, above)
    if columns is not None:
        for begin in range(0, columns.num_rows, ROWS):
            part = columns.slice(begin, ROWS)
            first = above + begin + 1
            yield Block(range(first, first + part.num_rows), ArrowColumns(part))
        return
    records = islice(table.records(), above - table.heading.place, None)
    place = next((k for k, name in enumerate(names) if plain_name(name) in IMAGE.names), 0)
    ended = table.heading.place + 1
    suspects: dict[str, _SwallowedRow] = {}
    for part in until_fault(records):
        last = part[-1][0]
        plain = last - ended == len(part) and {len(cells) for _, cells in part} == {len(names)}
        fitted = part if plain else _fit_rows(table, names, part, ended, (place, suspects))
        for rows in until_fault(fitted):
            numbers, cells = zip(*rows, strict=True)
            yield Block(numbers, dict(zip(names, zip(*cells, strict=True), strict=True)))
        ended = last
    if suspects:
        _check_suspects(table, suspects, place)


def _without_marks(table: _Table, names: Sequence[str], above: int) -> Table | None:
    """A table without quotation marks as Arrow reads it, or None unless every line is a row."""
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    if table.path.stat().st_size > _MOST_AT_ONCE or len(names) < 2:
        return None
    with open_input(table.path, what=table.what, max_bytes=MAX_BYTES) as handle:
        data = handle.read()
    n_rows = data.count(b"\n") + (not data.endswith(b"\n")) - above
    sign = table.heading.separator
    plain = b'"' not in data and data.count(b"\r") == data.count(b"\r\n") and sign.isascii()
    if not plain or n_rows < 1:
        return None
    try:
        read = read_csv(
            pa.BufferReader(data),
            ReadOptions(
                use_threads=False, block_size=_LONGEST_LINE, skip_rows=above, column_names=names
            ),
            ParseOptions(delimiter=sign, quote_char=False),
            ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowException:  # the reader of single rows words the fault
        return None
    return read if read.num_rows == n_rows else None


def _fit_rows(
    table: _Table,
    names: Sequence[str],
    records: Iterable[tuple[int, list[str]]],
    ended: int,
    suspected: tuple[int, dict[str, _SwallowedRow]],
) -> Iterator[tuple[int, list[str]]]:
    """The records of lines after ``ended``, with a cell for each column and without blank lines."""
    place, suspects = suspected
    for number, cells in records:
        first, ended = ended + 1, number
        if not cells:
            continue  # a blank line
        if len(cells) != len(names):
            cells = _fit_cells(table, names, cells, first, number)
        if number > first and not table.whole:
            suspects.update(_find_swallowed(table, cells, first, place))
        yield number, cells


def _find_swallowed(
    table: _Table, cells: Sequence[str], first: int, place: int
) -> dict[str, _SwallowedRow]:
    """The ids that begin lines within cells, each with its cell."""
    suspects: dict[str, _SwallowedRow] = {}
    for k, cell in enumerate(cells):
        within = ids_within(cell, table.heading.separator, len(cells), place)
        if not within:
            continue
        line = first + sum(map(line_ends, cells[:k]))
        suspects.update(dict.fromkeys(within, _SwallowedRow(line, cell)))
        if len(within) == line_ends(cell) and all(resembles(cells[place], i) for i in within):
            table.refuse_swallowed(within[0], suspects[within[0]])
    return suspects


def _fit_cells(
    table: _Table, names: Sequence[str], cells: list[str], first: int, number: int
) -> list[str]:
    """The cells without blank cells at the end; there must be one cell for each column."""
    if len(cells) > len(names) and not any(cell.strip() for cell in cells[len(names) :]):
        return cells[: len(names)]
    n_cells = f"{inflect(len(cells), 'cells')} under {inflect(len(names), 'columns')}"
    if number > first:
        table.refuse_unclosed(first, number, n_cells)
    sign = table.heading.separator
    fault = (
        f"a text with {_SIGNS.get(sign, repr(sign))} lacks quotation marks"
        if table.quoted
        else "a text has a tab, which this file cannot hold"
    )
    raise DataError(
        f"{table.path}, line {number}: {n_cells}: {sign.join(cells)[:_SHOWN]!r}; "
        f"the file may be cut off, or {fault}"
    )


def _check_suspects(table: _Table, suspects: Mapping[str, _SwallowedRow], place: int) -> None:
    """Refuse a cell in which a line begins with an id of another row."""
    for _, cells in islice(table.records(), 1, None):
        identifier = cells[place].strip() if place < len(cells) else ""
        if identifier in suspects:
            table.refuse_swallowed(identifier, suspects[identifier])
