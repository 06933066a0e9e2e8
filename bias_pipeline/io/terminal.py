"""The only module that writes to a terminal or a log.

Control characters in data are escaped. Ids, columns, keys, paths, names and texts of exceptions
come from files of unknown origin. Such texts may move the cursor, hide text or begin a line that
looks like ours. Secrets of the environment are replaced by the names of their variables, since a
command may contain a secret by mistake, and errors, logs and manifests repeat commands. A command
keeps running when a standard stream is closed, full or no longer read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import re
import select
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from bias_pipeline.errors import UsageError
from bias_pipeline.io.files import replace_file

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STREAMS = ("stdin", "stdout", "stderr")


class _Sink(io.FileIO):
    """A file that drops all text that cannot be written."""

    fault: OSError | None = None  # the first error, None if nothing was lost or the reader had gone

    def write(self, content: ReadableBuffer, /) -> int:
        """Write what can be written; reports that it wrote all."""
        try:
            while (written := super().write(content)) is None:  # the reader is slow
                select.select([], [self], [])
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.fault = self.fault or error
            return memoryview(content).nbytes
        return written


def open_streams() -> None:
    """Make printing never fail: output that a stream does not accept is lost.

    A closed stream is opened on the null device; otherwise the next opened file would get the
    stream's number, and printed text would end up in the file. Streams that other code replaced are
    left alone.
    """
    for number, name in enumerate(_STREAMS):
        _fill(number)
        if number and getattr(sys, name) is getattr(sys, f"__{name}__"):
            setattr(sys, name, _text(number, name))


def output_fault() -> OSError | None:
    """The error through which standard output lost text, or None if all readers got all text."""
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
    """A stream in Python's usual form; characters that its encoding lacks become ``?``."""
    stream = getattr(sys, name)
    return io.TextIOWrapper(
        io.BufferedWriter(_Sink(number, "w", closefd=False)),
        encoding=stream.encoding if stream else "utf-8",
        errors="replace",
        line_buffering=name == "stderr" or os.isatty(number),
    )


SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # endings of variables' names
# A user's name and password in an address
_CREDENTIALS = re.compile(r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)")
SHORTEST_SECRET = 8  # characters; a shorter value may occur in other text by chance


@lru_cache(maxsize=1)
def secrets() -> tuple[tuple[str, str], ...]:
    """The value and the name of each variable with a secret, the longest value first.

    The result is cached until ``secrets.cache_clear()``.
    """
    values = {
        value.strip(): name  # a line break at its end does not belong to a key
        for name, value in os.environ.items()
        if name.upper().endswith(SECRET_NAMES) and len(value.strip()) >= SHORTEST_SECRET
    }
    return tuple(sorted(values.items(), key=lambda item: -len(item[0])))


def redact(text: str) -> str:
    """Replace secrets in a text, also in addresses, by the names of their variables.

    Example:
        >>> redact("nothing of the environment")
        'nothing of the environment'
        >>> redact("no answer from http://me:pass@tracker:5000")
        'no answer from http://(user and password)@tracker:5000'
    """
    for value, name in secrets():
        text = text.replace(value, f"({name})")
    return _CREDENTIALS.sub("(user and password)", text) if "://" in text else text


def refuse_secrets(texts: Mapping[str, str]) -> None:
    """Refuse names of files and runs that contain a secret, since names cannot be redacted."""
    for name, text in texts.items():
        for value, variable in secrets():
            if value in text:
                raise UsageError(
                    f"{name} holds the value of {variable}, which no file may hold; change {name}"
                )


def redacted_data(value: Any) -> Any:
    """Plain data in which every text is redacted; keys of mappings stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redacted_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_data(item) for item in value]
    return value


def redact_files(paths: Iterable[Path]) -> None:
    """Redact files that a library wrote, except files that cannot be read or written."""
    for path in paths:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="utf-8")
            if redact(text) != text:
                replace_file(path, redact(text).encode(), sync=False)


# Invisible letters and marks that are not in Unicode's format category.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def printable(text: str) -> str:
    r"""Text with control, direction and invisible characters written out, and secrets redacted.

    Example:
        >>> printable("a\x1b[31mb"), printable("a\u202eb"), printable("a\nb")
        ('a\\x1b[31mb', 'a\\u202eb', 'a\\nb')
    """
    return "".join(
        sign if sign.isprintable() and sign not in INVISIBLE else ascii(sign)[1:-1]
        for sign in redact(text)
    )


def print_out(*lines: object) -> None:
    r"""Print lines; a line break within a line is written out.

    Example:
        >>> print_out("captions of a\nb", 3)
        captions of a\nb
        3
    """
    _write(sys.stdout, lines)


def warn(*lines: object) -> None:
    """Print lines to standard error, in the way of :func:`print_out`."""
    _write(sys.stderr, lines)


_wordings: list[Callable[[str], str]] = []


@contextlib.contextmanager
def lines_as(wording: Callable[[str], str]) -> Iterator[None]:
    """Within the context, pass every printed line and every written note through a function.

    Example:
        >>> with lines_as(str.upper):
        ...     print_out("a dog")
        A DOG
    """
    _wordings.append(wording)
    try:
        yield
    finally:
        _wordings.pop()


def reword(text: str) -> str:
    """Pass a text through the functions of all open contexts of :func:`lines_as`."""
    for wording in _wordings:
        text = wording(text)
    return text


def _write(stream: TextIO, lines: Sequence[object]) -> None:
    for line in lines or ("",):
        print(printable(reword(str(line))), file=stream)


class _Record(logging.LogRecord):
    """A log record of ours or of a library, with control characters written out."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[1]:
            self.exc_text = "\n".join(trace_of(self.exc_info[1]))

    def getMessage(self) -> str:  # noqa: N802 (the name is logging's)
        return printable(super().getMessage())


def guard() -> None:
    """Make all logs of this process printable, also an exception that ends the process."""
    secrets.cache_clear()
    logging.setLogRecordFactory(_Record)
    sys.excepthook = _excepthook


class _Lines(_Record):
    """A log record that keeps its line breaks."""

    def getMessage(self) -> str:  # noqa: N802 (the name is logging's)
        return "\n".join(map(printable, logging.LogRecord.getMessage(self).split("\n")))


@contextlib.contextmanager
def whole_configurations() -> Iterator[None]:
    """Inside the block, keep the line breaks of logged messages, which are YAML and tables."""
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(_Lines)
    try:
        yield
    finally:
        logging.setLogRecordFactory(before)


def trace_of(error: BaseException) -> list[str]:
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


NARROWEST = 40
_WORDS = re.compile(r"\S+\s*|\s+")


def width() -> int:
    """The width of the terminal, or of ``COLUMNS``; 80 if both are unknown."""
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def print_text(text: str) -> None:
    """Print a sentence, which is wrapped on a terminal and is one line elsewhere."""
    print_out(*(wrap_sentence(text).splitlines() if sys.stdout.isatty() else [text]))


def wrap_sentence(text: str) -> str:
    return "\n".join(fold(text, width()))


def screen_length(text: str) -> int:
    """The width of a text on a screen; East Asian characters take two columns, and accents none."""
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def fold(text: str, size: int, pieces: re.Pattern[str] = _WORDS) -> list[str]:
    """Lines of at most ``size`` columns, broken between words (or ``pieces``) where possible."""
    lines = [""]
    for piece in filter(None, pieces.findall(text)):
        if lines[-1] and screen_length((lines[-1] + piece).rstrip()) > size:
            lines.append("")
        lines[-1] += piece
        while screen_length(lines[-1].rstrip()) > size:
            line = lines[-1]
            cut = next(n for n in range(len(line), 0, -1) if screen_length(line[:n]) <= size)
            lines[-1:] = [line[:cut], line[cut:]]
    return [line.rstrip() for line in lines] if len(lines) > 1 else [text]
