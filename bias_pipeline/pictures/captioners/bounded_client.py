"""A client of the library openai that limits how much of an answer is read."""

from __future__ import annotations

import zlib
from contextlib import aclosing
from typing import Any

MOST_ANSWER_BYTES = 1 << 22  # most bytes of an answer after decompression
_AS_SENT, _DEFLATED = ("", "identity"), ("gzip", "x-gzip", "deflate")
_NOT_COPIED = ("content-encoding", "content-length", "content-type", "transfer-encoding")


class UnfitAnswerError(Exception):
    """The error for an answer that is not read completely.

    The message stands after the server's name.
    """


def bounded_client(**settings: Any) -> Any:
    """A client whose answers have limited size, are decompressed, and are in UTF-8."""
    import openai

    class Client(openai.DefaultAsyncHttpxClient):
        async def send(self, request: Any, *, stream: bool = False, **more: Any) -> Any:
            """The whole answer to a request."""
            del stream  # this package reads no answer bit by bit
            request.headers["accept-encoding"] = "identity"
            response = await super().send(request, stream=True, **more)
            try:
                content = await _content(response)
            finally:
                await response.aclose()
            headers = [
                pair for pair in response.headers.multi_items() if pair[0] not in _NOT_COPIED
            ]
            return type(response)(
                response.status_code,
                headers=headers,
                content=_as_utf8(content, response.charset_encoding),
                request=request,
                extensions={"reason_phrase": response.reason_phrase.encode("ascii", "replace")},
            )

    return Client(**settings)


async def _content(response: Any) -> bytes:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in (*_AS_SENT, *_DEFLATED):
        raise UnfitAnswerError(f"compresses its answers ({encoding[:40]!r}), which was not asked")
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in _DEFLATED else None
    content = bytearray()
    async with aclosing(response.aiter_raw()) as parts:
        async for part in parts:
            left = MOST_ANSWER_BYTES + 1 - len(content)
            try:
                content += part[:left] if inflater is None else inflater.decompress(part, left)
            except zlib.error as error:
                raise UnfitAnswerError("sent an answer whose compression is broken") from error
            if len(content) > MOST_ANSWER_BYTES:
                raise UnfitAnswerError(f"sent an answer above {MOST_ANSWER_BYTES >> 20} MiB")
            if inflater is not None and inflater.eof:
                break
    return bytes(content)


def _as_utf8(content: bytes, charset: str | None) -> bytes:
    r"""A text in UTF-8, from the encoding that the server names, if this is one for texts.

    Example:
        >>> _as_utf8(b"caf\xe9", "latin-1").decode(), _as_utf8(b"a cat", "rot13")
        ('café', b'a cat')
    """
    if charset is None:
        return content
    try:
        return content.decode(charset, "replace").encode("utf-8", "replace")
    except (LookupError, ValueError):
        return content
