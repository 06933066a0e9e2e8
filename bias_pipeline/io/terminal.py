"""The only module that writes to a terminal or a log; control characters in data are escaped.

Ids, columns, keys, paths, names and texts of exceptions come from files of unknown origin. They may
contain characters that move the cursor, recolour, reverse or hide text, or begin a new line that
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

# Invisible letters and marks that are not in Unicode's format category.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def printable(text: str) -> str:
    r"""Text with control, direction and invisible characters written out.

    Secrets of the environment in it are redacted.

    Example:
        >>> printable("a\x1b[31mb"), printable("a\u202eb"), printable("a\nb")
        ('a\\x1b[31mb', 'a\\u202eb', 'a\\nb')
    """
    return "".join(
        sign if sign.isprintable() and sign not in INVISIBLE else ascii(sign)[1:-1]
        for sign in redacted(text)
    )


def print_out(*lines: object) -> None:
    r"""Print lines; a line break within one is written out.

    Example:
        >>> print_out("captions of a\nb", 3)
        captions of a\nb
        3
    """
    _write(sys.stdout, lines)


def warn(*lines: object) -> None:
    """Print lines to standard error; see :func:`print_out`."""
    _write(sys.stderr, lines)


def _write(stream: TextIO, lines: Sequence[object]) -> None:
    for line in lines or ("",):
        print(printable(str(line)), file=stream)


class _Record(logging.LogRecord):
    """A log record, ours or a library's, with control characters written out."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[1]:
            self.exc_text = "\n".join(trace_of(self.exc_info[1]))

    def getMessage(self) -> str:  # noqa: N802 (the name is logging's)
        return printable(super().getMessage())


def guard() -> None:
    """Make all logging of this process, and an exception that ends it, printable."""
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
