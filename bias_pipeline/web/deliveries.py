"""Which pictures each visit was sent, on disk, so that raters go on after a restart."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

DELIVERIES = "deliveries.jsonl"
_PIECE = 65_536  # bytes; the next one is sent when most of this one has been taken


class Deliveries:
    """The file of a study. A line that a kill or a full disk cut counts as absent.

    Args:
        path: of the file; may be new.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = set(_read(path))

    def has(self, visit: str, image: str) -> bool:
        """Whether a picture was sent."""
        return (visit, image) in self._known

    def add(self, visit: str, image: str) -> None:
        """Note that a picture was sent; if that cannot be written, a restart shows it again."""
        if self.has(visit, image):
            return
        self._known.add((visit, image))
        with contextlib.suppress(OSError), self._path.open("ab") as file:
            file.write(f"\n{json.dumps([visit, image])}".encode())


def _read(path: Path) -> Iterator[tuple[str, str]]:
    content = path.read_bytes() if path.is_file() else b""
    for line in content.splitlines():
        with contextlib.suppress(ValueError):
            visit, image = json.loads(line)
            yield visit, image


class Picture(Response):
    """A JPEG.

    Args:
        content: of the file.
        delivered: called when a client that is still there was sent all of it.
        kept_s: how many seconds the browser may keep it.
    """

    media_type = "image/jpeg"

    def __init__(self, content: bytes, delivered: Callable[[], None], kept_s: int) -> None:
        caching = {"Cache-Control": f"private, max-age={kept_s}, immutable"} if kept_s else None
        super().__init__(content, headers=caching)
        self._content, self._delivered = content, delivered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it piece by piece."""
        request = Request(scope, receive)
        await request.body()  # after which only a client that leaves is heard of
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        size = len(self._content)
        for start in range(0, size, _PIECE):
            if await request.is_disconnected():
                return
            end = start + _PIECE
            piece = {"body": self._content[start:end], "more_body": end < size}
            await send({"type": "http.response.body", **piece})
        if scope["method"] == "GET":
            self._delivered()
