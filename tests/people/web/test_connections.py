"""A real server on loopback, against clients that hold connections, wait, or leave."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

pytest.importorskip("uvicorn", reason="needs the extra web")

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from bias_pipeline.people.web import application
from bias_pipeline.people.web.application import Connection
from bias_pipeline.people.web.rating import RatingPages
from tests.cli.commands import wait_for
from tests.people.web.conftest import HOSTS

Serve = Callable[[ASGIApp], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves an application from a thread; returns the port."""
    with ExitStack() as stack:

        def serve_in_thread(application: ASGIApp) -> int:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            config = uvicorn.Config(
                application, log_config=None, http=Connection, ws="none", lifespan="off",
                timeout_graceful_shutdown=1,
            )  # fmt: skip
            server = uvicorn.Server(config)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            stack.callback(thread.join)
            stack.callback(setattr, server, "should_exit", True)
            wait_for(lambda: server.started)
            return int(listener.getsockname()[1])

        yield serve_in_thread


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    """Opens connections, which end with the test, and sends something on them."""
    with ExitStack() as stack:

        def open_connection(port: int, sends: bytes = b"") -> socket.socket:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            client.sendall(sends)
            return client

        yield open_connection


def all_of(client: socket.socket) -> bytes:
    """What a server sends until it ends the connection."""
    parts = []
    with suppress(ConnectionResetError):
        while part := client.recv(1_000_000):
            parts.append(part)
    return b"".join(parts)


GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def prompt(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here"})


async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
    """Never answers."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(1_000_000):
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """All limits in tenths of a second."""
    monkeypatch.setattr(application, "_LOOK_S", 0.05)
    monkeypatch.setattr(application, "_IDLE_S", 0.3)
    monkeypatch.setattr(application, "_REQUEST_S", 0.6)


def test_where_connections_are_many_the_one_that_is_idle_longest_ends(serve, connect, monkeypatch):
    monkeypatch.setattr(application, "_MOST", 4)
    port = serve(prompt)
    idle = [connect(port) for _ in range(10)]
    assert connect(port, GET).recv(100).startswith(b"HTTP/1.1 200")
    assert all_of(idle[0]) == b""


def test_only_where_all_are_being_answered_a_new_one_is_refused(serve, connect, monkeypatch):
    monkeypatch.setattr(application, "_MOST", 2)
    port = serve(waiting)
    busy = [connect(port, GET) for _ in range(2)]
    time.sleep(0.2)
    assert connect(port, GET).recv(100).startswith(b"HTTP/1.1 503")
    busy[0].close()
    wait_for(lambda: b"503" not in first_answer(connect(port, GET)))


def first_answer(client: socket.socket) -> bytes:
    """What is answered within a short time."""
    client.settimeout(0.3)
    try:
        return client.recv(100)
    except TimeoutError:
        return b""


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("sends", [b"", b"GET / HTTP/1.1\r\nHost:", GET + b"GET / HT"])
def test_a_connection_without_a_whole_request_ends(sends, serve, connect):
    answer = all_of(connect(serve(prompt), sends))
    assert (b"here" in answer) == sends.startswith(GET)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("application", [waiting, endless])
def test_a_request_that_lasts_too_long_ends(application, serve, connect):
    """So do clients that never read what they are sent."""
    client = connect(serve(application), GET)
    time.sleep(1)
    assert len(all_of(client)) < 20_000_000


@pytest.mark.parametrize("path", ["/start", "/answer/1"])
def test_a_client_that_leaves_in_mid_form_leaves_no_trace(path, visit, serve, connect, caplog):
    caplog.set_level(logging.ERROR)
    anna = visit("anna")
    pages: RatingPages = anna.pages
    cookies = "; ".join(f"{one.name}={one.value}" for one in anna.client.cookies.jar)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookies}\r\nContent-Length: 100\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\nform="
    )
    port = serve(pages.application(HOSTS))
    with connect(port, head.encode()):
        time.sleep(0.2)
    time.sleep(0.2)
    assert connect(port, GET).recv(100).startswith(b"HTTP/1.1 200")
    assert [record.message for record in caplog.records] == []


@pytest.mark.parametrize("path", ["/", "/start", "/nowhere"])
def test_a_form_that_is_no_http_leaves_no_trace(path, visit, serve, connect, caplog):
    caplog.set_level(logging.ERROR)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\nZZ\r\n"
    )
    port = serve(visit().pages.application(HOSTS))
    all_of(connect(port, head.encode()))
    assert connect(port, GET).recv(100).startswith(b"HTTP/1.1 200")
    assert [record.message for record in caplog.records] == []


def test_a_form_that_does_not_come_is_refused(visit, serve, connect, monkeypatch):
    monkeypatch.setattr("bias_pipeline.people.web.application._FORM_S", 0.2)
    head = (
        b"POST /start HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\nform="
    )
    port = serve(visit().pages.application(HOSTS))
    assert connect(port, head).recv(100).startswith(b"HTTP/1.1 408")
