"""Prints tables and sentences within the width of the terminal (80 columns elsewhere).

A table that is too wide is folded into blocks below each other; each block repeats the columns
that name the rows. So each line is one row, and no number is cut.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from bias_pipeline.io.terminal import print_out, printable

NARROWEST = 40
INDENT, GAP = 2, 2
_INTERVAL = 26  # columns of a number with interval and arrow
_FEWEST = 8  # the least columns of a name
_WORDS = re.compile(r"\S+\s*|\s+")
_NAMES = re.compile(r"[^\s_\-./,=:]*[_\-./,=:]*\s*")  # a long name breaks after these characters


@dataclass(frozen=True)
class _Column:
    """Cells of a column, its name first.

    Attributes:
        cells: printable text.
        size: its width on the screen.
        flush: whether its text is flush left.
        pieces: the pattern at which longer cells are folded.
    """

    cells: Sequence[str]
    size: int
    flush: bool
    pieces: re.Pattern[str]


def width() -> int:
    """The width of the terminal, or ``COLUMNS``; 80 if there is neither."""
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def print_table(
    header: Sequence[str], lines: Sequence[Sequence[str]], *, keys: int, left: int | None = None
) -> None:
    """Print a table, folded if it is too wide.

    Args:
        header: C names of columns.
        lines: C cells each.
        keys: how many columns, from the left, name a row; every block repeats them.
        left: how many columns are flush left (``keys``).

    Example:
        >>> print_table(["name", "score"], [["mine", "0.5"]], keys=1)
          name  score
          ───────────
          mine    0.5
    """
    flush = keys if left is None else left
    cells = [list(map(printable, column)) for column in zip(header, *lines, strict=True)]
    columns = [
        _Column(column_cells, size, place < flush, _NAMES if place < keys else _WORDS)
        for place, (column_cells, size) in enumerate(zip(cells, _sizes(cells, keys), strict=True))
    ]
    for number, block in enumerate(_blocks(columns[:keys], columns[keys:])):
        if number:
            print_out()
        _print_block(block)


def fits_in_width(header: Sequence[str], lines: Sequence[Sequence[str]]) -> bool:
    """Whether a table needs no folding."""
    return _total(_natural(column) for column in zip(header, *lines, strict=True)) <= width()


def print_text(text: str) -> None:
    """Print a sentence: wrapped on a terminal, one line elsewhere."""
    print_out(*(wrapped(text).splitlines() if sys.stdout.isatty() else [text]))


def wrapped(text: str) -> str:
    """A sentence in lines of at most :func:`width`."""
    return "\n".join(_folded(text, width(), _WORDS))


def _total(widths: Iterable[int]) -> int:
    sizes = list(widths)
    return INDENT + sum(sizes) + GAP * (len(sizes) - 1)


def _blocks(named: Sequence[_Column], others: Sequence[_Column]) -> Iterator[list[_Column]]:
    """The columns of each block, those that name rows first."""
    block = [*named]
    for column in others:
        if len(block) > len(named) and _total([other.size for other in [*block, column]]) > width():
            yield block
            block = [*named]
        block.append(column)
    yield block


def _sizes(columns: Sequence[Sequence[str]], keys: int) -> list[int]:
    """Widths as the cells need, with the keys cut so that a number with its interval fits."""
    sizes = [_natural(column) for column in columns]
    fitting = min(_INTERVAL, max(sizes[keys:], default=0))
    while _total([*sizes[:keys], fitting]) > width() and max(sizes[:keys], default=0) > _FEWEST:
        sizes[sizes.index(max(sizes[:keys]))] -= 1
    room = width() - _total(sizes[:keys]) - GAP
    return [*sizes[:keys], *(min(size, max(room, _FEWEST)) for size in sizes[keys:])]


def _natural(column: Sequence[str]) -> int:
    return max(map(_length, column))


def _print_block(block: Sequence[_Column]) -> None:
    for number in range(len(block[0].cells)):
        cells = [_folded(column.cells[number], column.size, column.pieces) for column in block]
        for parts in zip_longest(*cells, fillvalue=""):
            line = [
                _justified(part, column.flush, column.size)
                for part, column in zip(parts, block, strict=True)
            ]
            print_out((" " * INDENT + (" " * GAP).join(line)).rstrip())
        if number == 0:
            print_out(" " * INDENT + _rule(_total([column.size for column in block]) - INDENT))


def _justified(text: str, flush: bool, size: int) -> str:
    blank = " " * (size - _length(text))
    return text + blank if flush else blank + text


def _rule(size: int) -> str:
    """A horizontal line, in characters that the output can encode."""
    try:
        "─".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "-" * size
    return "─" * size


def _length(text: str) -> int:
    """Width on a screen: East Asian characters take two columns, accents none."""
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def _folded(text: str, size: int, pieces: re.Pattern[str]) -> list[str]:
    """Lines of at most ``size`` columns, broken between words where possible."""
    lines = [""]
    for piece in filter(None, pieces.findall(text)):
        if lines[-1] and _length((lines[-1] + piece).rstrip()) > size:
            lines.append("")
        lines[-1] += piece
        while _length(lines[-1].rstrip()) > size:
            cut = next(n for n in range(len(lines[-1]), 0, -1) if _length(lines[-1][:n]) <= size)
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return [line.rstrip() for line in lines] if len(lines) > 1 else [text]
