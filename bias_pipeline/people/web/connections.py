"""Connections of browsers: idle ones end, and nobody who holds many of them locks others out."""

from __future__ import annotations

import asyncio
import resource

from uvicorn.protocols.http.h11_impl import H11Protocol

_IDLE_S = 10.0  # without a whole request
_REQUEST_S = 120.0  # until a request is answered and its answer is taken
_LOOK_S = 2.0
_MOST = 512  # connections, if the process may have twice as many open files
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"


def most_connections() -> int:
    """How many connections there may be."""
    return min(_MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


class Connection(H11Protocol):
    """A connection that ends after some seconds without a request.

    A browser keeps several open, so they are no measure of what it asks for: where there are too
    many, the one that is idle longest makes room, and only where all are being answered a new one
    is refused.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Watch it from now on."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch = self.loop.call_later(_LOOK_S, self._look)
        if len(self.connections) > most_connections():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch it no longer."""
        self._watch.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; who answers the request that it belongs to sends no more."""
        if self._is_idle:
            super().send_400_response(msg)
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.abort()

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        others = [
            other
            for other in self.connections
            if isinstance(other, Connection) and other is not self and other._is_idle
        ]
        if others:
            min(others, key=lambda other: other._since).transport.abort()
        else:
            self.transport.write(_FULL)
            self.transport.close()

    def _look(self) -> None:
        """End it if nothing has happened for too long."""
        waited = self.loop.time() - self._since
        if waited >= (_IDLE_S if self._is_idle else _REQUEST_S):
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(_LOOK_S, self._look)
