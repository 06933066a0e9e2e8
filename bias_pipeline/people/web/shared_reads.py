"""Reads slow files once for all pages that need them, while other pages are served."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import anyio
from starlette.exceptions import HTTPException

from bias_pipeline.errors import ResourceError

T = TypeVar("T")
_THREADS = 2  # reads at a time
_PATIENCE_S = 10.0  # a page waits at most this long, then says that it waits
_AGAIN_S = 3  # a page that says that it waits loads itself again after this time
_MOST_KEPT = 8  # results in memory


class SharedReads(Generic[T]):
    """Reads in its own threads, with the latest request first, and stores some results."""

    def __init__(self, size: Callable[[T], int], most: int) -> None:
        self._size, self._most = size, most
        self._reads: dict[Hashable, Future[T]] = {}
        self._waiting: queue.LifoQueue[tuple[Future[T], Callable[[], T]]] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, key: Hashable, read: Callable[[], T]) -> Future[T]:
        """Begin to read unless the read has begun before; a failed read is tried again."""
        with self._lock:
            known = self._reads.pop(key, None)
            if known is None or (known.done() and known.exception() is not None):
                known = Future()
                self._waiting.put((known, read))
                if len(self._threads) < _THREADS:
                    self._threads.append(threading.Thread(target=self._work, daemon=True))
                    self._threads[-1].start()
            self._reads[key] = known
            self._forget()
            return known

    def _work(self) -> None:
        while True:
            _read_next(self._waiting)

    def _forget(self) -> None:
        """Forget the results that were requested longest ago."""
        total = 0
        done = [(key, read) for key, read in self._reads.items() if read.done()]
        for number, (key, read) in enumerate(reversed(done)):
            total += 0 if read.exception() else self._size(read.result())
            if number and (number >= _MOST_KEPT or total > self._most):
                del self._reads[key]


def _read_next(waiting: queue.LifoQueue[tuple[Future[T], Callable[[], T]]]) -> None:
    """Do the read that was requested last; while the thread waits, it stores no result."""
    future, read = waiting.get()
    try:
        future.set_result(read())
    except MemoryError:
        future.set_exception(ResourceError("there is too little memory to read it"))
    except BaseException as error:  # raised again where the result is asked for
        future.set_exception(error)


async def wait_for_read(read: Future[T], what: str) -> T:
    """The result of a read; if it is slow, a page that reloads itself."""
    waiting: Any = asyncio.shield(asyncio.wrap_future(read))
    with anyio.move_on_after(_PATIENCE_S):
        result: T = await waiting
        return result
    waiting.cancel()
    raise HTTPException(
        503,
        f"{what} are being read, which takes a while; this page loads itself again",
        {"Refresh": str(_AGAIN_S), "Retry-After": str(_AGAIN_S)},
    )
