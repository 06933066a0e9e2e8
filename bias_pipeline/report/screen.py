"""Prints tables on the screen.

A table that is wider than the terminal is folded into blocks, one below the other, so that no
number is cut. Each block begins with the columns that contain the names of rows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from bias_pipeline.io.terminal import fold, print_out, print_text, printable, screen_length, width
from bias_pipeline.report.table import Table, cell_text

INDENT, GAP = 2, 2
_INTERVAL = 26  # characters of a number with interval and arrow
_FEWEST = 8  # the fewest characters of a name
_NAMES = re.compile(r"[^\s_\-./,=:]*[_\-./,=:]*\s*")  # a long name breaks after these characters


def print_table(table: Table) -> None:
    """Print a table below its caption, folded if it is too wide.

    Example:
        >>> print_table(Table("Scores", ["name", "score"], [["mine", "0.5"]]))
        Scores
          name  score
          ───────────
          mine    0.5
    """
    if table.caption:
        print_text(table.caption)
    columns = _columns(table)
    sizes = _sizes(columns, table.keys)
    for number, block in enumerate(_blocks(sizes, table.keys)):
        if number:
            print_out()
        for row in range(len(table.rows) + 1):
            for line in _lines(table, [(place, columns[place][row]) for place in block], sizes):
                print_out(line)
            if row == 0:
                print_out(" " * INDENT + _rule(_total(sizes[place] for place in block) - INDENT))


def fits_in_width(table: Table) -> bool:
    """Whether a table fits into the terminal without folding."""
    return _total(map(_natural, _columns(table))) <= width()


def _columns(table: Table) -> list[list[str]]:
    """The texts of each column, with its name first."""
    lines = [table.head, *([cell_text(cell) for cell in row] for row in table.rows)]
    return [list(map(printable, column)) for column in zip(*lines, strict=True)]


def _total(widths: Iterable[int]) -> int:
    sizes = list(widths)
    return INDENT + sum(sizes) + GAP * (len(sizes) - 1)


def _natural(column: Sequence[str]) -> int:
    return max(map(screen_length, column))


def _sizes(columns: Sequence[Sequence[str]], keys: int) -> list[int]:
    """The width of each column; names of rows are cut so that a number and its interval fit."""
    sizes = [_natural(column) for column in columns]
    fitting = min(_INTERVAL, max(sizes[keys:], default=0))
    while _total([*sizes[:keys], fitting]) > width() and max(sizes[:keys], default=0) > _FEWEST:
        sizes[sizes.index(max(sizes[:keys]))] -= 1
    room = width() - _total(sizes[:keys]) - GAP
    return [*sizes[:keys], *(min(size, max(room, _FEWEST)) for size in sizes[keys:])]


def _blocks(sizes: Sequence[int], keys: int) -> Iterator[list[int]]:
    """The places of the columns of each block; columns with names of rows come first."""
    block = list(range(keys))
    for place in range(keys, len(sizes)):
        if len(block) > keys and _total(sizes[one] for one in [*block, place]) > width():
            yield block
            block = list(range(keys))
        block.append(place)
    yield block


def _lines(table: Table, cells: Sequence[tuple[int, str]], sizes: Sequence[int]) -> Iterator[str]:
    """The screen lines of a row; ``cells`` are its texts, with the places of their columns."""
    folded = [
        fold(text, sizes[place], _NAMES) if place < table.keys else fold(text, sizes[place])
        for place, text in cells
    ]
    for parts in zip_longest(*folded, fillvalue=""):
        line = []
        for (place, _), part in zip(cells, parts, strict=True):
            blank = " " * (sizes[place] - screen_length(part))
            line.append(part + blank if table.texts or place < table.keys else blank + part)
        yield (" " * INDENT + (" " * GAP).join(line)).rstrip()


def _rule(size: int) -> str:
    """A horizontal line, in characters that the output can encode."""
    try:
        "─".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "-" * size
    return "─" * size
