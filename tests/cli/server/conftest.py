"""Captions of photos by a server on this machine."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bias_pipeline.io.terminal import secrets
from bias_pipeline.pictures.captioners import served
from tests.chat_stub import Body, Reply, Stub, serving
from tests.cli.server.dogs import DOGS


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number in DOGS:
        Image.new("RGB", (16, 12), (5 * number, 0, 0)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(autouse=True)
def _impatient(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(served, "FIRST_WAIT_S", 0.005)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    secrets.cache_clear()
    yield
    secrets.cache_clear()


@pytest.fixture
def ask(ends, photos) -> Callable[..., str]:
    """Captions the photos by a server into ``out``; returns what was printed."""

    def command(url: str, *words: str, folder: Path = photos, code: int = 0) -> str:
        options = ("--server", url, "--model", "qwen", "--out", "out")
        return ends(code, "caption", str(folder), *options, *words)

    return command


@pytest.fixture
def ask_stub(ask) -> Callable[..., tuple[Stub, str]]:
    """The same by a server with the answers of a test, which is returned too."""

    def command(answer: Callable[[Body], Reply], *words: str, **more: Any) -> tuple[Stub, str]:
        with serving(answer) as stub:
            return stub, ask(stub.url, *words, **more)

    return command


@pytest.fixture
def gather(ok) -> Callable[..., list[dict[str, Any]]]:
    """The rows of the gathered file."""

    def command(*words: str) -> list[dict[str, Any]]:
        ok("caption", "--gather", "out", *words)
        return json.loads(Path("out", "captions.json").read_text())

    return command


@pytest.fixture
def by_image(gather) -> Callable[..., dict[Any, str]]:
    """Image to caption."""
    return lambda *words: {row["image_id"]: row["caption"] for row in gather(*words)}
