"""Where a page of this machine listens, and who may reach it."""

from __future__ import annotations

import secrets
import socket
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from bias_pipeline.commands.arguments import Parser, number
from bias_pipeline.declared import Range
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.io.terminal import print_out

if TYPE_CHECKING:
    from starlette.applications import Starlette

Port = Annotated[int, Range(low=0, high=65_535)]
PORT = 8000
_LOOPBACK = "127.0.0.1"
_HERE = frozenset({"localhost", _LOOPBACK, "[::1]"})
_EVERYWHERE = ("0.0.0.0", "::", "*", "")  # noqa: S104 - refused
_LEAST_TOKEN = 12  # characters
_AT_ONCE = 64  # requests


def add_address_options(parser: Parser, others: str) -> None:
    """Add ``--port``, ``--host`` and ``--token``.

    Args:
        parser: of the command.
        others: who reaches it from elsewhere, for the help.
    """
    parser.add_argument(
        "--port", type=number(Port), default=PORT, help=f"0 takes any free one ({PORT})"
    )
    parser.add_argument(
        "--host", metavar="NAME", help=f"name or address of this machine, for {others} elsewhere"
    )
    parser.add_argument(
        "--token",
        nargs="?",
        const="",
        metavar="SECRET",
        help=f"what the links of {others} must hold, needed with --host; one is made if none is "
        "given",
    )


def check_address(options: Namespace) -> None:
    """Refuse an address that lets others in without a token.

    Raises:
        UsageError: saying what is missing.
    """
    refused = {
        "--host takes the name or address by which others reach this machine": options.host
        in _EVERYWHERE,
        "--host lets others in and needs --token": options.host and options.token is None,
        f"--token: give {_LEAST_TOKEN} characters or more, or none": options.token
        and len(options.token) < _LEAST_TOKEN,
    }
    for words, applies in refused.items():
        if applies:
            raise UsageError(words)


def token_of(options: Namespace) -> str:
    """What links must hold; empty if nothing."""
    return "" if options.token is None else options.token or secrets.token_urlsafe(12)


def hosts_of(options: Namespace) -> frozenset[str]:
    """The names by which the page may be called, without ports."""
    return _HERE | ({options.host.lower()} if options.host else frozenset())


@contextmanager
def listening(options: Namespace) -> Iterator[socket.socket]:
    """A socket at the address.

    Raises:
        ResourceError: if it cannot be used.
    """
    place = (options.host or _LOOPBACK, options.port)
    try:
        listener = socket.create_server(place)
    except OSError as error:
        raise ResourceError(
            f"{place[0]}:{place[1]} cannot be used ({error.strerror or error}); choose another "
            "--port, or 0 for any"
        ) from error
    with listener:
        yield listener


def serve(
    application: Starlette,
    listener: socket.socket,
    options: Namespace,
    token: str,
    *,
    about: str,
    stop: str,
) -> None:
    """Print the link and serve the pages until the process is ended.

    Args:
        application: the pages.
        listener: at the address.
        options: with the host.
        token: that the link holds; empty if none.
        about: printed after the link.
        stop: what stopping means, printed last.
    """
    import uvicorn

    link = f"http://{options.host or _LOOPBACK}:{listener.getsockname()[1]}/"
    print_out(f"{link}{f'?token={token}' if token else ''}  {about}", f"stop with Ctrl-C; {stop}")
    sys.stdout.flush()
    config = uvicorn.Config(
        application,
        log_level="error",
        access_log=False,
        limit_concurrency=_AT_ONCE,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listener])
