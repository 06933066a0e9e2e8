"""The web server: templates, forms, and guards against other sites, strangers and idle clients."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from urllib.parse import parse_qs

import anyio
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bias_pipeline.errors import ResourceError
from bias_pipeline.io.terminal import print_out


@cache
def templates() -> Environment:
    """The templates; each template is compiled once, and all inserted texts are escaped."""
    return Environment(
        loader=PackageLoader("bias_pipeline.people.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def static(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """A page that serves a file from the folder of the templates."""
    content = files("bias_pipeline.people.web").joinpath("templates", name).read_text("utf-8")

    async def read(request: Request) -> Response:
        del request
        return Response(content, media_type=kind)

    return read


LONGEST_FORM = 10_000  # bytes
_FORM_S = 20.0  # seconds within which a form must arrive
_FORM = "application/x-www-form-urlencoded"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'self'; "
    "script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",  # unless a response says how long it may be kept
}
_READS = ("GET", "HEAD")
_MOST_DIGITS = 9


class Guard:
    """Answers only requests that use this server's name and come from its own pages.

    The headers of an answer forbid a page to do much.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._app
        if scope["type"] == "http":
            answer = self._refusal(Request(scope)) or answer
        await answer(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        if _name(request.headers.get("host", "")) not in self._hosts:  # DNS rebinding
            return PlainTextResponse("this server is not called that\n", 421)
        if _is_foreign(request):
            return PlainTextResponse("another site asked for this; open the page itself\n", 403)
        return None


def _is_foreign(request: Request) -> bool:
    """Whether a page of another site sends a form or embeds our page; links are allowed."""
    headers, reads = request.headers, request.method in _READS
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        return not (reads and headers.get("sec-fetch-mode") == "navigate")
    origin = headers.get("origin")
    is_ours = origin is None or origin.partition("://")[2].lower() == headers["host"].lower()
    return not (reads or is_ours)


class TokenGate:
    """Lets in visitors whose link has the token; a cookie identifies them later.

    The browser also sends the cookie for links from other pages (``lax``). So a link must not
    change anything that the cookie guards.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token, self._visit = app, token, secrets.token_urlsafe(24)
        self._cookie = f"browse_{hashlib.sha256(self._visit.encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._app
        if scope["type"] == "http" and self._token:
            answer = self._refusal(Request(scope)) or answer
        await answer(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if is_same_secret(request.cookies.get(self._cookie, ""), self._visit):
            return None
        if not is_same_secret(request.query_params.get("token", ""), self._token):
            return PlainTextResponse("open the whole link that you were sent\n", 403)
        response = RedirectResponse(str(request.url.remove_query_params("token")), 303)
        response.set_cookie(self._cookie, self._visit, httponly=True, samesite="lax")
        return response


def _name(host: str) -> str:
    """A host without its port.

    Example:
        >>> _name("127.0.0.1:8000"), _name("[::1]:80"), _name("LocalHost")
        ('127.0.0.1', '[::1]', 'localhost')
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def form_token(visit: str) -> str:
    """The token that every form of a visit contains; another site cannot know this token."""
    return hashlib.sha256(f"form {visit}".encode()).hexdigest()


async def form_of(request: Request, visit: str) -> dict[str, str]:
    """The fields of a form; if several fields have one name, the first field counts."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, "only forms are taken, no files")
    content = b""
    try:
        with anyio.fail_after(_FORM_S):
            async for part in request.stream():
                content += part
                if len(content) > LONGEST_FORM:
                    raise HTTPException(413, "the form is too long")
        fields = parse_qs(content.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
    except (ClientDisconnect, TimeoutError) as error:
        raise HTTPException(408, "the form did not arrive") from error
    except ValueError as error:
        raise HTTPException(400, "the form is not text") from error
    form = {name: values[0] for name, values in fields.items()}
    if not visit or not is_same_secret(form.get("form", ""), form_token(visit)):
        raise HTTPException(
            403,
            "this form is from another visit, or this browser keeps no cookies; go back to the "
            "first page",
        )
    return form


_PIECE = 65_536  # bytes; the next piece is sent when most of this piece has been taken


class Picture(Response):
    """A JPEG that the browser may keep for some seconds."""

    media_type = "image/jpeg"

    def __init__(self, content: bytes, delivered: Callable[[], None], kept_s: int) -> None:
        caching = {"Cache-Control": f"private, max-age={kept_s}, immutable"} if kept_s else None
        super().__init__(content, headers=caching)
        self._content, self._delivered = content, delivered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await request.body()  # after the body, a client can only leave
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        size = len(self._content)
        for place in range(0, size, _PIECE):
            if await request.is_disconnected():
                return
            end = place + _PIECE
            piece = {"body": self._content[place:end], "more_body": end < size}
            await send({"type": "http.response.body", **piece})
        if scope["method"] == "GET":
            self._delivered()


def number_in(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise HTTPException(404, "there is no such page")
    return int(text)


def is_same_secret(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        number = error.errno or 0  # below 0 if the name is unknown
        reason = os.strerror(number) if number > 0 else error.strerror
        raise ResourceError(
            f"{host}:{port} cannot be used ({reason}); choose another --port, or 0 for any"
        ) from error
    with listener:
        yield listener


def serve(
    application: ASGIApp,
    listener: socket.socket,
    host: str,
    token: str,
    *,
    about: str,
    stop: str,
) -> None:
    """Print the link and serve the pages until the process is ended."""
    import uvicorn

    link = f"http://{host}:{listener.getsockname()[1]}/"
    print_out(f"{link}{f'?token={token}' if token else ''}  {about}", f"stop with Ctrl-C; {stop}")
    sys.stdout.flush()
    config = uvicorn.Config(
        application,
        log_level="error",
        access_log=False,
        http=Connection,
        ws="none",
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    with server.capture_signals():  # the server itself captures signals only once the loop runs
        server.run(sockets=[listener])


_IDLE_S = 10.0  # a connection may stay open so long without a whole request
_REQUEST_S = 120.0  # until a request is answered and its answer is taken
_LOOK_S = 2.0
_MOST = 512  # connections, if the process may have twice as many open files
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"


class Connection(H11Protocol):
    """A connection that ends after some seconds without a request.

    A browser keeps several connections open, even if it asks for little. If there are too many
    connections, the server closes the connection that has been idle longest. A new connection is
    refused only if all others are being answered.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch = self.loop.call_later(_LOOK_S, self._look)
        if len(self.connections) > min(_MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2):
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

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer 400 to a request that is not HTTP, and stop any answer that is being sent."""
        if self._is_idle:
            super().send_400_response(msg)
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.abort()

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        waited = self.loop.time() - self._since
        if waited >= (_IDLE_S if self._is_idle else _REQUEST_S):
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(_LOOK_S, self._look)
