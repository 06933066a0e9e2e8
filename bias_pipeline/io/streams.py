"""Keeps a command running when a standard stream is closed, full or no longer read."""

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
    """A file that drops what cannot be written.

    Attributes:
        fault: the first error, None if nothing was lost or the reader had gone.
    """

    fault: OSError | None = None

    def write(self, content: ReadableBuffer, /) -> int:
        """Write what can be written; reports that it wrote all."""
        try:
            written = super().write(content)
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.fault = self.fault or error
            return memoryview(content).nbytes
        return cast("int", written)


def open_streams() -> None:
    """Make printing never fail: output that a stream does not accept is lost.

    A closed stream is opened on the null device; else the next opened file would get its number,
    and printed text would end up in it. Replaced streams stay as they are.
    """
    for number, name in enumerate(_NAMES):
        _fill(number)
        if number and getattr(sys, name) is getattr(sys, f"__{name}__"):
            setattr(sys, name, _text(number, name))


def fault() -> OSError | None:
    """The error by which standard output lost text, None if none or the reader had gone."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    sink = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return sink.fault if isinstance(sink, _Sink) else None


def _fill(number: int) -> None:
    """Open a closed stream on the null device, also for child processes."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number


def _text(number: int, name: str) -> io.TextIOWrapper:
    """A stream as Python opens it; a character its encoding lacks becomes ``?``."""
    stream = getattr(sys, name)
    return io.TextIOWrapper(
        io.BufferedWriter(_Sink(number, "w", closefd=False)),
        encoding=stream.encoding if stream else "utf-8",
        errors="replace",
        line_buffering=name == "stderr" or os.isatty(number),
    )
