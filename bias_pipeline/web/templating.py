"""What pages are made of: templates, a style and a script, all from this package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response


def templates() -> Environment:
    """The templates; all that is filled in is escaped."""
    return Environment(
        loader=PackageLoader("bias_pipeline.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def static(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """What answers with a file that lies beside the templates.

    Args:
        name: of the file.
        kind: its media type.
    """
    content = files("bias_pipeline.web").joinpath("templates", name).read_text(encoding="utf-8")

    async def read(request: Request) -> Response:
        del request
        return Response(content, media_type=kind)

    return read
