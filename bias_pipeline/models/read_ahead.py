"""Results that threads compute a little ahead of their use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def ahead(
    function: Callable[[S], T],
    items: Iterable[S],
    threads: int,
    window: int,
    meanwhile: Callable[[], None] = lambda: None,
    every_s: float = 10.0,
) -> Generator[T, None, None]:
    """Results in the order of the items, computed by threads a little ahead of their use.

    Example:
        >>> list(ahead(abs, [-2, 3, -4], threads=2, window=1))
        [2, 3, 4]
    """
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > window:
                yield _awaited(waiting.popleft(), meanwhile, every_s)
        while waiting:
            yield _awaited(waiting.popleft(), meanwhile, every_s)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _awaited(future: Future[T], meanwhile: Callable[[], None], every_s: float) -> T:
    while not wait([future], every_s).done:
        meanwhile()
    return future.result()
