"""What quotation marks in a text table are: they enclose cells, or belong to the captions.

In ``.csv`` they enclose cells (RFC 4180). Tables with tabs have no quoting (Flickr30k, CC3M), but
pandas, Excel and R write some of them with it, so the whole file decides.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence

_ENCLOSED = re.compile(r'"(?:[^"]|"")*+"')
_NEEDED = ('""', ",")  # what a cell without tabs is enclosed for; the comma by Excel
_LINE_END = re.compile(r"\r\n?|\n")
_SHOWN = 60  # characters from a mark on


def encloses_cells(lines: Iterable[str], n_columns: int) -> bool | None:
    r"""Whether marks enclose cells of a table with tabs, as far as its lines say it alone.

    Marks are text where every line has as many cells as the heading, unless all marks enclose whole
    cells, and of each column either all or only those that need it.

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
    needless: Counter[int] = Counter()  # of them those that hold nothing to be enclosed for
    for line in iterator:
        rows += not line.isspace()
        if line.strip("\r\n") and line.count("\t") != n_columns - 1:
            return None
        for place, cell in enumerate(_raw_cells(line) if '"' in line else ()):
            if '"' not in cell:
                continue
            if not _is_enclosed(cell):
                return False
            enclosed[place] += 1
            needless[place] += not any(sign in cell[1:-1] for sign in _NEEDED)
    return bool(enclosed) and all(enclosed[place] == rows for place in +needless)


def all_enclosed(line: str, separator: str) -> bool:
    """Whether marks enclose every cell of a line, as where a program encloses all.

    Example:
        >>> all_enclosed('"image_id","caption"', ","), all_enclosed('image_id,"caption"', ",")
        (True, False)
    """
    return all(map(_is_enclosed, line.rstrip("\r\n").split(separator)))


def _raw_cells(line: str) -> list[str]:
    return line.rstrip("\r\n").split("\t")


def _is_enclosed(cell: str) -> bool:
    return bool(_ENCLOSED.fullmatch(cell))


def fits_quoted(lines: Iterable[str], n_columns: int) -> bool:
    """Whether a table with tabs is whole if marks enclose cells: no cell holds further rows."""
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
    """The line ends in a text, of whatever system."""
    return len(_LINE_END.findall(text))


def ids_within(cell: str, separator: str, n_columns: int, place: int) -> list[str]:
    """The ids with which lines within a cell begin, as rows do that an unclosed mark swallowed.

    Example:
        >>> ids_within('a 40" tv' + chr(10) + "8,a dog", ",", 2, 0)
        ['8']
    """
    rows = [line.split(separator) for line in _LINE_END.split(cell)[1:]]
    return [cells[place].strip() for cells in rows if len(cells) >= n_columns > 1]


def resembles(identifier: str, other: str) -> bool:
    """Whether two ids are written alike: digits beside digits, and about as long.

    Example:
        >>> resembles("1000.jpg", "1007.jpg"), resembles("1000", "7"), resembles("1000", "a dog")
        (True, False, False)
    """
    alike = re.sub(r"\d+", "0", identifier) == re.sub(r"\d+", "0", other)
    return alike and any(map(str.isdigit, other)) and abs(len(identifier) - len(other)) < 2


def unclosed_mark(lines: Sequence[str], separator: str) -> tuple[int, str]:
    """Where the first mark stands that does not enclose a cell.

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
            return line_ends(text[: mark.start()]), shown[:_SHOWN]
        place = enclosed.end()
    return 0, text[:_SHOWN]
