"""Where long work is: bars on a terminal, a line a minute in a log, nothing of what is short."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from bias_pipeline.io.terminal import printable, warn

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

T = TypeVar("T")

PATIENCE_S = 2.0  # nothing is drawn before
DRAW_S = 0.5  # between two looks, on a terminal
LINE_S = 60.0  # between two lines, in a log
_TELLING = 2  # steps that are done before the time left is told


class Bar:
    """Steps whose total grows as work is found.

    Args:
        label: what is going on.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.total = 0
        self.done = 0
        self.within: Bar | None = None
        self._start = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since it was opened."""
        return time.monotonic() - self._start

    def advance(self) -> None:
        """One step is done."""
        self.done += 1

    def look(self) -> None:
        """Learn what is done, where nobody says so."""

    def seconds_left(self) -> float | None:
        """Expected seconds until the last step is done, None as long as nothing is known.

        The first step says too little: it reads and imports what the others find ready. Where all
        steps so far are done, nobody knows how many are still to be found.
        """
        if not _TELLING <= self.done < self.total:
            return None
        return self.elapsed / self.done * (self.total - self.done)

    def place(self) -> str:
        """Which step it is at.

        Example:
            >>> bar = Bar("lic sat")
            >>> bar.total, bar.done = 12, 3
            >>> bar.place()
            'lic sat: 3 of 12'
        """
        return f"{self.label}: {self.done} of {self.total}" if self.total else self.label

    def sentence(self) -> str:
        """Where it is, how long it still takes, and the same of what goes on within it."""
        inner = self.within
        left = left_words(self.seconds_left())
        told = self.place() + (f", {left}" if left else "")
        return f"{told} ({inner.sentence()})" if inner else told


def left_words(seconds: float | None) -> str:
    """How long it still takes, in words.

    Example:
        >>> left_words(42.3), left_words(250), left_words(9000), left_words(None)
        ('about 42 s left', 'about 4 min left', 'about 2.5 h left', '')
    """
    return "" if seconds is None else f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever is read most easily.

    Example:
        >>> duration(0.4), duration(95), duration(4000)
        ('1 s', '95 s', '67 min')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


_current: ContextVar[Bar | None] = ContextVar("bar", default=None)


@contextmanager
def bar(label: str) -> Iterator[Bar]:
    """Show the steps of everything that is tracked inside."""
    with showing(Bar(label)) as opened:
        yield opened


@contextmanager
def showing(opened: Bar) -> Iterator[Bar]:
    """Show a bar; within another one, as a part of that."""
    outer = _current.get()
    token = _current.set(opened)
    if outer is None:
        teller = _Screen(opened) if sys.stderr.isatty() else _Log(opened)
        teller.start()
    else:
        outer.within = opened
    try:
        yield opened
    finally:
        _current.reset(token)
        if outer is None:
            teller.close()
        else:
            outer.within = None


def track(steps: Iterable[T], total: int) -> Iterator[T]:
    """Pass steps on and count them on the open bar, if there is one.

    Example:
        >>> with bar("counting") as open_bar:
        ...     seen = list(track("abc", total=3))
        >>> open_bar.done, open_bar.total
        (3, 3)
    """
    current = _current.get()
    if current is not None:
        current.total += total
    for step in steps:
        yield step
        if current is not None:
            current.advance()


class _Teller(threading.Thread):
    """Looks at a bar from time to time, however long one step takes.

    Args:
        opened: the outermost bar.
        every_s: seconds between two looks.
    """

    def __init__(self, opened: Bar, every_s: float) -> None:
        super().__init__(daemon=True)
        self.opened = opened
        self.every_s = every_s
        self._closed = threading.Event()

    def run(self) -> None:
        while not self._closed.wait(self.every_s):
            self.opened.look()
            self.tell()

    def tell(self) -> None:
        """Show where the bar is."""

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()
        self.join()


class _Log(_Teller):
    """A line a minute, for people who read a log later or follow it."""

    def __init__(self, opened: Bar) -> None:
        super().__init__(opened, LINE_S)

    def tell(self) -> None:
        warn(self.opened.sentence())


class _Screen(_Teller):
    """A bar for each of those that are open, wiped at the end."""

    def __init__(self, opened: Bar) -> None:
        super().__init__(opened, DRAW_S)
        self._drawn: Progress | None = None
        self._tasks: dict[int, TaskID] = {}

    def tell(self) -> None:
        if self.opened.elapsed < PATIENCE_S:
            return
        self._drawn = self._drawn or _drawing()
        open_bars = [own for own in (self.opened, self.opened.within) if own is not None]
        for gone in self._tasks.keys() - {id(own) for own in open_bars}:
            self._drawn.remove_task(self._tasks.pop(gone))
        for own in open_bars:
            if id(own) not in self._tasks:
                self._tasks[id(own)] = self._drawn.add_task("", left="")
            self._drawn.update(
                self._tasks[id(own)],
                description=printable(own.place()),
                completed=own.done,
                total=own.total or None,
                left=left_words(own.seconds_left()),
            )

    def close(self) -> None:
        super().close()
        if self._drawn is not None:
            self._drawn.stop()


def _drawing() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    drawing = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
    )
    drawing.start()
    return drawing
