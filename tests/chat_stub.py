"""A server of chat completions on this machine, whose answers a test decides."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

from PIL import Image

Body = Mapping[str, Any]


@dataclass
class Reply:
    """An answer of the server."""

    body: object
    status: int = 200
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


def completion(text: str | None, finish: str = "stop", **message: object) -> Reply:
    """A caption."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish,
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return Reply({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})


def error(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """An error as services word it."""
    return Reply({"error": {"message": message, "code": code}}, status, headers=headers)


def picture_of(body: Body) -> Image.Image:
    """The picture in a request."""
    url = body["messages"][0]["content"][0]["image_url"]["url"]
    return Image.open(BytesIO(base64.b64decode(url.partition(",")[2])))


def color_of(body: Body) -> int:
    """Which of the pictures of :func:`write_colors` a request shows."""
    red = picture_of(body).resize((1, 1)).getpixel((0, 0))[0]
    return round(red / 5)


@dataclass
class Stub:
    """The server, with what it was sent until now."""

    answer: Callable[[Body], Reply]
    requests: list[Body] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    url: str = ""
    most_at_once: int = 0
    close: Callable[[], None] = lambda: None
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, change: int) -> None:
        """One request more or less at a time."""
        with self._lock:
            self._at_once += change
            self.most_at_once = max(self.most_at_once, self._at_once)


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stub.requests.append(body)
            stub.headers.append(dict(self.headers))
            stub.count(1)
            try:
                reply = stub.answer(body)
            finally:
                stub.count(-1)
            self.reply(reply)

        def do_GET(self) -> None:
            self.reply(Reply({"object": "list", "data": [{"id": "qwen"}, {"id": "llava"}]}))

        def reply(self, reply: Reply) -> None:
            content = reply.body if isinstance(reply.body, str | bytes) else json.dumps(reply.body)
            content = content if isinstance(content, bytes) else content.encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(len(content)))
            for name, value in reply.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes away is no fault."""


@contextmanager
def serving(
    answer: Callable[[Body], Reply], tls: ssl.SSLContext | None = None, port: int = 0
) -> Iterator[Stub]:
    """A server as long as the context lasts."""
    stub = Stub(answer)
    server = _Server(("127.0.0.1", port), _handler(stub))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    stub.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()

    def close() -> None:
        server.shutdown()
        server.server_close()

    stub.close = close
    try:
        yield stub
    finally:
        close()
        thread.join()
