"""Standard streams that are closed, full or no longer read: no reason to break off the work."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NAMES = ("stdin", "stdout", "stderr")


class _Sink(io.FileIO):
    """A file that what cannot be written to it is lost on.

    Attributes:
        fault: the first reason for that, None if nothing was lost or nobody was reading.
    """

    fault: OSError | None = None

    def write(self, content: ReadableBuffer, /) -> int:
        """Write what can be written; says that it was all."""
        try:
            written = super().write(content)
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.fault = self.fault or error
            return memoryview(content).nbytes
        return cast("int", written)


def open_streams() -> None:
    """Let printing fail nothing: what a stream does not take is lost.

    A closed stream leads to nowhere; else the next file that is opened would take its number, and
    what is printed would end up in it. Streams that somebody has replaced stay.
    """
    for number, name in enumerate(_NAMES):
        _fill(number)
        if number and getattr(sys, name) is getattr(sys, f"__{name}__"):
            setattr(sys, name, _text(number, name))


def fault() -> OSError | None:
    """Why standard output lost something, None if it did not or nobody was reading."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    sink = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return sink.fault if isinstance(sink, _Sink) else None


def _fill(number: int) -> None:
    """Have a closed stream lead to nowhere, for processes that are started, too."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number


def _text(number: int, name: str) -> io.TextIOWrapper:
    """A stream as Python opens it; a sign that its encoding lacks becomes ``?``."""
    own = getattr(sys, name)
    return io.TextIOWrapper(
        io.BufferedWriter(_Sink(number, "w", closefd=False)),
        encoding=own.encoding if own else "utf-8",
        errors="replace",
        line_buffering=name == "stderr" or os.isatty(number),
    )
