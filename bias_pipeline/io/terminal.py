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
from types import TracebackType
from typing import Any, TextIO

from bias_pipeline.io.redaction import redacted, secrets

# Letters and marks that show nothing; Unicode does not count them among its format characters.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def printable(text: str) -> str:
    r"""Text whose control, direction and invisible characters are written out, not obeyed.

    Keys of the environment in it are redacted.

    Example:
        >>> printable("a\x1b[31mb"), printable("a\u202eb"), printable("a\nb")
        ('a\\x1b[31mb', 'a\\u202eb', 'a\\nb')
    """
    return "".join(
        sign if sign.isprintable() and sign not in INVISIBLE else ascii(sign)[1:-1]
        for sign in redacted(text)
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
    secrets.cache_clear()
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
