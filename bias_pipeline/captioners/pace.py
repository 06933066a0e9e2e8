"""How fast requests follow each other, so that a server bears them."""

from __future__ import annotations

import asyncio
import random
import time

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0  # before a request is tried again
_FIRST_GAP_S = 0.05
_FASTER = 0.95  # by each answer
_NO_GAP_S = 0.001


class Pace:
    """The time between two requests: doubled when the server refuses one, shortened by answers.

    Attributes:
        gap_s: between the beginnings of two requests, in seconds; 0 until the server refuses one.
    """

    def __init__(self) -> None:
        self.gap_s = 0.0
        self._next = 0.0  # when the next request may start
        self._slowed = 0.0

    async def turn(self) -> float:
        """Wait for a turn; returns when it came."""
        start = max(time.monotonic(), self._next)
        self._next = start + self.gap_s
        await asyncio.sleep(start - time.monotonic())
        return start

    def slow_down(self, started: float, wait_s: float) -> None:
        """The server refused a request for being one too many.

        Args:
            started: when the request was sent; those sent before the last refusal change nothing.
            wait_s: no request starts before that.
        """
        now = time.monotonic()
        self._next = max(self._next, now + wait_s)
        if started >= self._slowed:
            self.gap_s = min(LONGEST_WAIT_S, max(_FIRST_GAP_S, 2 * self.gap_s))
            self._slowed = now

    def speed_up(self) -> None:
        """The server answered."""
        self.gap_s = self.gap_s * _FASTER if self.gap_s > _NO_GAP_S else 0.0


def wait_before(attempt: int) -> float:
    """Seconds before a request is sent again, doubled each time.

    Args:
        attempt: how many attempts failed, from 1.

    Example:
        >>> 0.75 <= wait_before(1) <= 1, 45 <= wait_before(20) <= 60
        (True, True)
    """
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 30))
    return longest * random.uniform(0.75, 1)  # noqa: S311 - so that not all come at once
