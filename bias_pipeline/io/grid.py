"""Tables and sentences for people: within the width of the terminal, 80 columns elsewhere.

A table that is too wide is folded: its columns stand in blocks below each other, each with the
columns that name the rows. So a line stays a row, and no number is cut.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from bias_pipeline.io.terminal import printable, say

NARROWEST = 40
INDENT, GAP = 2, 2
_INTERVAL = 26  # what a number with its interval and arrow takes
_FEWEST = 8  # columns that a name keeps, however little room there is
_WORDS = re.compile(r"\S+\s*|\s+")
_NAMES = re.compile(r"[^\s_\-./,=:]*[_\-./,=:]*\s*")  # a long name breaks behind these signs


@dataclass(frozen=True)
class _Column:
    """Cells of a column, its name first.

    Attributes:
        cells: printable text.
        size: how many columns of the screen it takes.
        flush: whether its text is flush left.
        pieces: what a cell that is longer is folded into.
    """

    cells: Sequence[str]
    size: int
    flush: bool
    pieces: re.Pattern[str]


def width() -> int:
    """Columns of the terminal, or of ``COLUMNS``; 80 where there is neither."""
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def print_table(
    header: Sequence[str], lines: Sequence[Sequence[str]], *, keys: int, left: int | None = None
) -> None:
    """Print a table, folded where it is too wide.

    Args:
        header: the C columns' names.
        lines: of C cells each.
        keys: how many columns, from the left, name a row; they stand in every block.
        left: how many columns are flush left; the keys, if left out.

    Example:
        >>> print_table(["name", "score"], [["mine", "0.5"]], keys=1)
          name  score
          ───────────
          mine    0.5
    """
    flush = keys if left is None else left
    cells = [list(map(printable, column)) for column in zip(header, *lines, strict=True)]
    columns = [
        _Column(own, size, place < flush, _NAMES if place < keys else _WORDS)
        for place, (own, size) in enumerate(zip(cells, _sizes(cells, keys), strict=True))
    ]
    for number, block in enumerate(_blocks(columns[:keys], columns[keys:])):
        if number:
            say()
        _print_block(block)


def fits(header: Sequence[str], lines: Sequence[Sequence[str]]) -> bool:
    """Whether a table needs no folding."""
    return _total(_natural(column) for column in zip(header, *lines, strict=True)) <= width()


def print_text(text: str) -> None:
    """Print a sentence: broken between words on a terminal, one line elsewhere."""
    say(*(wrapped(text).splitlines() if sys.stdout.isatty() else [text]))


def wrapped(text: str) -> str:
    """A sentence in lines of at most :func:`width`."""
    return "\n".join(_folded(text, width(), _WORDS))


def _total(widths: Iterable[int]) -> int:
    own = list(widths)
    return INDENT + sum(own) + GAP * (len(own) - 1)


def _blocks(named: Sequence[_Column], others: Sequence[_Column]) -> Iterator[list[_Column]]:
    """Columns that stand beside each other, the names first."""
    block = [*named]
    for column in others:
        if len(block) > len(named) and _total([own.size for own in [*block, column]]) > width():
            yield block
            block = [*named]
        block.append(column)
    yield block


def _sizes(columns: Sequence[Sequence[str]], keys: int) -> list[int]:
    """Widths: as the cells need, but that a number with its interval fits beside the keys."""
    sizes = [_natural(column) for column in columns]
    beside = min(_INTERVAL, max(sizes[keys:], default=0))
    while _total([*sizes[:keys], beside]) > width() and max(sizes[:keys], default=0) > _FEWEST:
        sizes[sizes.index(max(sizes[:keys]))] -= 1
    room = width() - _total(sizes[:keys]) - GAP
    return [*sizes[:keys], *(min(size, max(room, _FEWEST)) for size in sizes[keys:])]


def _natural(column: Sequence[str]) -> int:
    return max(map(_length, column))


def _print_block(block: Sequence[_Column]) -> None:
    for number in range(len(block[0].cells)):
        cells = [_folded(own.cells[number], own.size, own.pieces) for own in block]
        for parts in zip_longest(*cells, fillvalue=""):
            line = [
                _justified(part, own.flush, own.size)
                for part, own in zip(parts, block, strict=True)
            ]
            say((" " * INDENT + (" " * GAP).join(line)).rstrip())
        if number == 0:
            say(" " * INDENT + _rule(_total([own.size for own in block]) - INDENT))


def _justified(text: str, flush: bool, size: int) -> str:
    blank = " " * (size - _length(text))
    return text + blank if flush else blank + text


def _rule(size: int) -> str:
    """A line, in signs that the output can take."""
    try:
        "─".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "-" * size
    return "─" * size


def _length(text: str) -> int:
    """Columns on a screen: signs of East Asia take two, accents none."""
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def _folded(text: str, size: int, pieces: re.Pattern[str]) -> list[str]:
    """Lines of at most ``size`` columns, broken between words if these are not longer."""
    lines = [""]
    for piece in filter(None, pieces.findall(text)):
        if lines[-1] and _length((lines[-1] + piece).rstrip()) > size:
            lines.append("")
        lines[-1] += piece
        while _length(lines[-1].rstrip()) > size:
            cut = next(n for n in range(len(lines[-1]), 0, -1) if _length(lines[-1][:n]) <= size)
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return [line.rstrip() for line in lines] if len(lines) > 1 else [text]
