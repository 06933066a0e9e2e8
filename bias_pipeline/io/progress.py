"""Shows the progress of long work, with bars on a terminal and a line a minute in a log."""

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

PATIENCE_S = 2.0  # shorter work gets no bar
DRAW_S = 0.5  # between two updates on a terminal
LINE_S = 60.0  # between two lines in a log
_TELLING = 2  # finished steps before the time left is shown


class Bar:
    """Steps of work; their number may grow while the work runs."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.total = 0
        self.done = 0
        self.within: Bar | None = None
        self._start = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._start

    def update(self) -> None:
        """Set the number of steps that are ``done``, if :func:`track` does not count them."""

    def seconds_left(self) -> float | None:
        """Expected seconds until the last step is done; None while they are unknown.

        The first step is not representative: it also reads and imports. If all known steps are
        done, more steps may still be added.
        """
        if not _TELLING <= self.done < self.total:
            return None
        return self.elapsed_s / self.done * (self.total - self.done)

    def place(self) -> str:
        """The current step.

        Example:
            >>> bar = Bar("lic sat")
            >>> bar.total, bar.done = 12, 3
            >>> bar.place()
            'lic sat: 3 of 12'
        """
        return f"{self.label}: {self.done} of {self.total}" if self.total else self.label

    def sentence(self) -> str:
        """The current step and the time left, with the name and percentage of an inner bar, if any.

        Example:
            >>> jobs, pictures, images = Bar("jobs"), Bar("pictures"), Bar("images")
            >>> jobs.total, pictures.total, images.total, images.done = 3, 4, 4, 1
            >>> jobs.within = images
            >>> jobs.sentence()
            'jobs: 0 of 3, now images 25 %'
            >>> pictures.within = images
            >>> pictures.sentence()
            'pictures: 1 of 4'
        """
        inner, left = self.within, left_words(self.seconds_left())
        if inner is not None and inner.total == self.total and not self.done:
            return f"{self.label}: {inner.sentence().removeprefix(f'{inner.label}: ')}"
        text = self.place()
        if inner is not None:
            share = f" {100 * inner.done // inner.total} %" if inner.total else ""
            text += f", now {inner.label}{share}"
            inner_left = left_words(inner.seconds_left())
            left = left or (f"{inner_left} of it" if inner_left else "")
        return f"{text}, {left}" if left else text


def left_words(seconds: float | None) -> str:
    """The time left, in words.

    Example:
        >>> left_words(42.3), left_words(250), left_words(9000), left_words(None)
        ('about 42 s left', 'about 4 min left', 'about 2.5 h left', '')
    """
    return "" if seconds is None else f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours, whichever reads best.

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
    """Show a bar for everything that is tracked inside this block."""
    with showing(Bar(label)) as opened:
        yield opened


@contextmanager
def showing(opened: Bar) -> Iterator[Bar]:
    """Show a bar, or, inside another bar, show it as a part of that bar."""
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
    """Yield the steps and, if a bar is open, count them on the bar.

    Example:
        >>> with bar("counting") as open_bar:
        ...     letters = list(track("abc", total=3))
        >>> open_bar.done, open_bar.total
        (3, 3)
    """
    current = _current.get()
    if current is not None:
        current.total += total
    for step in steps:
        yield step
        if current is not None:
            current.done += 1


class _BarThread(threading.Thread):
    """A thread that shows a bar at regular times, however long a step takes."""

    def __init__(self, opened: Bar, every_s: float) -> None:
        super().__init__(daemon=True)
        self.opened = opened
        self.every_s = every_s
        self._closed = threading.Event()

    def run(self) -> None:
        while not self._closed.wait(self.every_s):
            self.opened.update()
            self.show()

    def show(self) -> None: ...

    def close(self) -> None:
        self._closed.set()
        self.join()


class _Log(_BarThread):
    """Writes a line a minute, for people who follow a log or read it later."""

    def __init__(self, opened: Bar) -> None:
        super().__init__(opened, LINE_S)

    def show(self) -> None:
        warn(self.opened.sentence())


class _Screen(_BarThread):
    """Draws every open bar, and erases the bars at the end."""

    def __init__(self, opened: Bar) -> None:
        super().__init__(opened, DRAW_S)
        self._drawn: Progress | None = None
        self._tasks: dict[int, TaskID] = {}

    def show(self) -> None:
        if self.opened.elapsed_s < PATIENCE_S:
            return
        self._drawn = self._drawn or _drawing()
        open_bars = [
            open_bar for open_bar in (self.opened, self.opened.within) if open_bar is not None
        ]
        for gone in self._tasks.keys() - {id(open_bar) for open_bar in open_bars}:
            self._drawn.remove_task(self._tasks.pop(gone))
        for open_bar in open_bars:
            if id(open_bar) not in self._tasks:
                self._tasks[id(open_bar)] = self._drawn.add_task("", left="")
            self._drawn.update(
                self._tasks[id(open_bar)],
                description=printable(open_bar.place()),
                completed=open_bar.done,
                total=open_bar.total or None,
                left=left_words(open_bar.seconds_left()),
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
