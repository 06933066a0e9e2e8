"""What tests of the door share: a small cell, and processes of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

from bias_pipeline.commands.main import main
from tests.corpora import REPOSITORY

# A cell of half a second, too small for a learning curve.
SMALL = ("dataset.n_images=75", "seeds=1", "stats.resamples=50", "logger=csv")

# A cell that trains nothing.
COUNTING = ("metric=gender_error", "dataset.n_images=300", "seeds=1", "stats.resamples=50",
            "logger=csv")  # fmt: skip

# Fourteen small cells.
SWEEP = (
    "captioner=all",
    "metric=lic,leakage",
    "dataset.n_images=75",
    "seeds=2",
    "logger=csv",
    "stats.resamples=50",
)

Run = Callable[..., tuple[int, str]]


def results(folder: Path) -> list[Path]:
    """The finished results of the commands that ran in a folder."""
    return sorted(folder.glob("outputs/[!.]*/result.json"))


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a result."""
    content: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return content


def part(path: Path, name: str) -> dict[str, Any]:
    """One row of a result."""
    (result,) = (row for row in rows(path) if row["part"] == name)
    return result


def own_choice(folder: Path, group: str, content: str | bytes, name: str = "own") -> str:
    """Write a choice of a user's own; returns the word that leads to it."""
    path = folder / "mine" / group / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"--config-dir={folder / 'mine'}"


def start(
    folder: Path, *words: str, output: IO[bytes] | int = subprocess.DEVNULL, **variables: str
) -> subprocess.Popen[bytes]:
    """Start a command in a process of its own, which prints into ``output``."""
    command = [sys.executable, "-m", "bias_pipeline", *words]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **variables}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=output,
        stderr=output,
        preexec_fn=heed_signals,
    )


def heed_signals() -> None:
    """In a child of a test run in the background, which ignores what a terminal sends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def serve(
    folder: Path, *words: str, end: int = signal.SIGINT
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of the pages of a command, and its process, which is ended afterwards."""
    log = folder / f"{words[0]}.log"
    with log.open("wb") as file:
        process = start(folder, *words, "--port=0", output=file)
    try:
        wait_for(lambda: b"stop with" in log.read_bytes() or process.poll() is not None)
        yield re.findall(r"http://\S+", log.read_text())[0], process
    finally:
        process.send_signal(end)
        process.wait(timeout=60)


def fork(folder: Path, *words: str) -> BaseProcess:
    """Start a command in a process that has imported all before: a second's work less each time."""
    server = get_context("forkserver")
    server.set_forkserver_preload(["tests.cli.warm"])
    process = server.Process(target=obey, args=(folder, words))
    with patch.dict(os.environ, PYTHONPATH=str(REPOSITORY)):  # the server heeds no other path
        process.start()
    return process


def obey(folder: Path, words: tuple[str, ...]) -> None:
    """What a forked process does."""
    os.chdir(folder)
    heed_signals()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.exit(main(words))


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something has happened."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)
