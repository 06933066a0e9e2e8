"""The only place that writes to a terminal or a log: what data say is shown there, never obeyed.

Ids, columns, keys, paths, names and the texts of exceptions come from files of strangers. A line of
them may hold signs that move the cursor, recolour, reverse or hide text, or begin a new line that
looks like ours. Here they are written out.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.table import Table

PLAIN_WIDTH = 1000  # nothing wraps where lines may be long
# Letters and marks that show nothing; Unicode does not count them among its format characters.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


@dataclass(frozen=True)
class Grid:
    """A table of text for the terminal.

    Attributes:
        head: names of the columns.
        rows: their cells.
        title: above it.
        left: how many columns are text, set to the left; numbers are set to the right.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str | None = None
    left: int = 1


def printable(text: str) -> str:
    r"""Text whose control, direction and invisible characters are written out, not obeyed.

    Example:
        >>> printable("a\x1b[31mb"), printable("a\u202eb"), printable("a\nb")
        ('a\\x1b[31mb', 'a\\u202eb', 'a\\nb')
    """
    return "".join(
        sign if sign.isprintable() and sign not in INVISIBLE else ascii(sign)[1:-1] for sign in text
    )


def say(*lines: object) -> None:
    r"""Print lines; a line break within one is written out.

    Example:
        >>> say("captions of a\nb", 3)
        captions of a\nb
        3
    """
    _write(sys.stdout, lines)


def warn(*lines: object) -> None:
    """Print lines where errors go; see :func:`say`."""
    _write(sys.stderr, lines)


def _write(stream: TextIO, lines: Sequence[object]) -> None:
    for line in lines or ("",):
        print(printable(str(line)), file=stream)


def show(*parts: Grid | str, width: int = PLAIN_WIDTH) -> None:
    """Print tables and sentences, in colour on a terminal.

    Args:
        parts: in this order; sentences are not wrapped.
        width: of a table where there is no terminal, in columns.
    """
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else width)
    for part in parts:
        if isinstance(part, Grid):
            console.print(_table(part))
        else:
            say(part)


def _table(grid: Grid) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = None if grid.title is None else Text(printable(grid.title))
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for place, name in enumerate(grid.head):
        number = place >= grid.left
        table.add_column(
            Text(printable(name)), justify="right" if number else "left", overflow="fold"
        )
    for row in grid.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


class _Record(logging.LogRecord):
    """What is logged, by us or by a library, without signs that a terminal obeys."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[1]:
            self.exc_text = "\n".join(trace_of(self.exc_info[1]))

    def getMessage(self) -> str:  # noqa: N802 (the name is logging's)
        return printable(super().getMessage())


def guard() -> None:
    """Let everything that this process logs, and an exception that ends it, be printable."""
    logging.setLogRecordFactory(_Record)
    sys.excepthook = _excepthook


def trace_of(error: BaseException) -> list[str]:
    """The lines of a traceback."""
    return [
        printable(line)
        for part in traceback.format_exception(error)
        for line in part.rstrip("\n").split("\n")
    ]


def _excepthook(
    kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    del kind, where
    warn(*trace_of(error))
