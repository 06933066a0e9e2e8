"""How fast requests follow one another, as fast as a server bears."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 60.0  # before a request is sent again
LONGEST_WAIT_FOR_LOAD_S = 8.0  # the same after a refusal for load, beside the pace of all requests
_FIRST_GAP_S, _NO_GAP_S, _LONGEST_GAP_S = 0.05, 0.001, 10.0
_SLOW_GAP_S = 0.2  # above it an answer halves the gap, below it makes the gap a little shorter
_FASTER, _MUCH_FASTER = 0.95, 0.5
_SHORTER = 0.8  # so that a server that fails one request in five is not asked ever less
_SHOWN_S = 60.0  # how far back answers show what the server bears
_LOOK_S = 0.1  # between two looks at whether the gap has changed


class Pace:
    """The time between two requests: doubled when the server refuses one, shortened by answers.

    It is always shorter than that between the answers of the last minute; the time for which the
    server wanted to be left alone does not count.
    """

    def __init__(self) -> None:
        self.gap_s = 0.0  # between the beginnings of two requests
        self._queue = asyncio.Lock()  # requests start in the order in which they came
        self._last = -_SHOWN_S  # when the last request started
        self._closed_until = self._closed_s = 0.0  # and for how long, in all
        self._slowed = 0.0
        self._answers: deque[float] = deque()  # when those of the last minute came, without rests

    async def turn(self, rest: Callable[[float], Awaitable[None]]) -> float:
        """Wait for a turn, by ``rest`` for some seconds; returns when it came."""
        async with self._queue:
            while (left := self._wait_s()) > 0:
                await rest(min(left, _LOOK_S))
            self._last = time.monotonic()
            return self._last

    def _wait_s(self) -> float:
        return max(self._closed_until, self._last + self.gap_s) - time.monotonic()

    def slow_down(self, started: float, wait_s: float) -> None:
        """The server refused a request for being one too many."""
        now = time.monotonic()
        closed_until = max(self._closed_until, now + wait_s)
        self._closed_s += closed_until - max(self._closed_until, now)
        self._closed_until = closed_until
        if started >= self._slowed:
            slower = min(_LONGEST_GAP_S, max(_FIRST_GAP_S, 2 * self.gap_s))
            self.gap_s = min(slower, self._shown_gap_s(now))
            self._slowed = now

    def speed_up(self) -> None:
        """The server answered."""
        self._answers.append(self._open_s(time.monotonic()))
        if self.gap_s > _SLOW_GAP_S:
            self.gap_s *= _MUCH_FASTER
        else:
            self.gap_s = self.gap_s * _FASTER if self.gap_s > _NO_GAP_S else 0.0

    def _open_s(self, now: float) -> float:
        """The time without that for which the server wanted to be left alone."""
        return now - self._closed_s + max(0.0, self._closed_until - now)

    def _shown_gap_s(self, now: float) -> float:
        """A little less than the mean time between the answers of the last minute."""
        then = self._open_s(now)
        while self._answers and self._answers[0] < then - _SHOWN_S:
            self._answers.popleft()
        if len(self._answers) < 2:
            return _LONGEST_GAP_S
        return _SHORTER * (then - self._answers[0]) / (len(self._answers) - 1)


def wait_before(attempt: int, longest_s: float = LONGEST_WAIT_S) -> float:
    """Seconds before a request is sent again, doubled each time.

    Example:
        >>> 0.18 <= wait_before(1) <= 0.25, 45 <= wait_before(20) <= 60
        (True, True)
    """
    longest = min(longest_s, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 30))
    return longest * random.uniform(0.75, 1)  # noqa: S311 - so that not all come at once
