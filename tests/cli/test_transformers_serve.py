"""``caption --server`` against ``transformers serve`` with a model of random weights."""

import base64
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from bias_pipeline.pictures.captioners import served
from bias_pipeline.pictures.captioners.chat_server import ChatServer
from tests.cli.commands import Run, wait_for
from tests.corpora import REPOSITORY
from tests.photo_folder import write_photos
from tests.tiny_chat_models import tiny_captioner

N_PHOTOS = 40
NEEDED = ("openai", "fastapi", "uvicorn", "pydantic", "transformers.cli.serving")
# Without torchvision, whose build for another torch reads no pictures.
PROGRAM = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] == "torchvision" else find(name, package)
)
from transformers.cli.transformers import main
sys.argv = ["transformers", "serve", *sys.argv[1:]]
main()
"""


def _absent() -> list[str]:
    parents = (name.rpartition(".")[0] for name in NEEDED)
    return [
        name
        for name, parent in zip(NEEDED, parents, strict=True)
        if (parent and find_spec(parent) is None) or find_spec(name) is None
    ]


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_absent()), reason=f"transformers serve lacks {', '.join(_absent())}"),
]


class Server:
    """``transformers serve`` on a port of its own, which stays the same after a restart."""

    def __init__(self, model: Path, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.model, self.log = model, folder / "server.log"
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--device", "cpu"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(self.model), *options],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY), "HF_HUB_OFFLINE": "1"},
                stdout=log,
                stderr=log,
            )
        wait_for(self.answers, seconds=300)

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                return True
        except (URLError, OSError):
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tiny_captioner("llava"), tmp_path_factory.mktemp("server"))
    yield started
    started.kill()


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture
def ask(ends, photos, server, monkeypatch) -> Callable[..., str]:
    """Caption the photos by the server; returns what was printed."""
    monkeypatch.setattr(served, "FIRST_WAIT_S", 0.05)

    def command(*words: str, out: str = "out", code: int = 0) -> str:
        options = ("--server", server.url, "--model", str(server.model), "--out", out)
        more = ("--max-new-tokens", "12", *words)
        return ends(code, "caption", str(photos), *options, *more)

    return command


def gather(run: Run, out: str = "out") -> list[tuple[int, int, str]]:
    code, printed = run("caption", "--gather", out)
    assert code == 0, printed
    rows = json.loads(Path(out, "captions.json").read_text())
    return [(row["image_id"], row.get("sample", 0), row["caption"]) for row in rows]


def test_its_captions_are_those_of_the_model_itself(ask, run, ok, photos, server):
    """On the pictures that were sent."""
    assert "tokens used: " in ask()
    sender = ChatServer(server.url, "llava")
    Path("sent").mkdir()
    for path in photos.iterdir():
        content = base64.b64decode(sender.picture(path).partition(",")[2])
        Path("sent", f"{path.stem}.jpg").write_bytes(content)
    words = ("--model", str(server.model), "--out", "here", "--max-new-tokens", "12")
    ok("caption", "sent", *words, "--threads", "1")
    assert gather(run) == gather(run, "here")
    assert len({caption for *_, caption in gather(run)}) > N_PHOTOS / 3


def test_a_server_that_is_killed_and_started_again_loses_nothing(ask, run, server):
    """The answers of before are as they were, and those of after as if nothing had happened."""
    ask(out="unbroken")

    def kill_half_way() -> None:
        wait_for(lambda: len(list(Path("out").glob("*/blocks/*/*.block"))) > 4)
        server.kill()

    killing = threading.Thread(target=kill_half_way)
    killing.start()
    assert "no server answers at" in ask("--batch", "2", code=5)
    killing.join()
    before = {path: path.read_bytes() for path in Path("out").glob("*/blocks/*/*.block")}
    assert 0 < len(before) < N_PHOTOS
    server.start()
    ask("--batch", "2")
    assert gather(run) == gather(run, "unbroken")
