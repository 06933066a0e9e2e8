"""Progress bars: only on a terminal, and only for what takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from bias_pipeline.terminal import printable

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

PATIENCE_S = 2.0


class Bar:
    """A bar whose total grows as work is found.

    Args:
        label: what is going on.
        visible: whether it may be drawn at all.
    """

    def __init__(self, label: str, visible: bool) -> None:
        self.label = label
        self.visible = visible
        self.total = 0
        self.done = 0
        self._start = time.monotonic()
        self._drawn: Progress | None = None

    def advance(self) -> None:
        """One step is done."""
        self.done += 1
        if not self.visible or time.monotonic() - self._start < PATIENCE_S:
            return
        if self._drawn is None:
            self._drawn = _drawing()
            self._drawn.add_task(printable(self.label))
        self._drawn.update(self._drawn.task_ids[0], completed=self.done, total=self.total)

    def close(self) -> None:
        """Wipe the bar."""
        if self._drawn is not None:
            self._drawn.stop()


_current: ContextVar[Bar | None] = ContextVar("bar", default=None)


@contextmanager
def bar(label: str) -> Iterator[Bar]:
    """Draw the steps of everything that is tracked inside."""
    opened = Bar(label, visible=sys.stderr.isatty())
    token = _current.set(opened)
    try:
        yield opened
    finally:
        _current.reset(token)
        opened.close()


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


def _drawing() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    drawing = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    drawing.start()
    return drawing
