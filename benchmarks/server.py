"""Captions by a server that takes a tenth of a second an answer, beside a plain loop of requests.

Usage: python -m benchmarks.server
"""

from __future__ import annotations

import multiprocessing
import os
import re
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from openai import OpenAI
from PIL import Image

from benchmarks.cells import run
from benchmarks.record import publish, table
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.chat_server import ChatServer
from tests.chat_stub import Body, Reply, completion, serving

ANSWER_S = 0.1
AT_ONCE = (1, 4, 16)
N_LOOP, N_PHOTOS = 64, 320
_RATE = re.compile(r"images in [\d.]+ s: ([\d.]+) images/s")


def slow(_: Body) -> Reply:
    time.sleep(ANSWER_S)
    return completion("a dog on a red sofa")


def serve(address: Connection) -> None:
    """Serve until this process is ended."""
    with serving(slow) as stub:
        address.send(stub.url)
        threading.Event().wait()


def write_photos(folder: Path) -> list[Path]:
    """Photos of noise of COCO's size."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    noise = Image.fromarray(generator.integers(0, 256, (60, 80, 3), np.uint8)).resize((640, 480))
    paths = [folder / f"{number}.jpg" for number in range(N_PHOTOS)]
    for path in paths:
        noise.save(path)
    return paths


def loop_rate(url: str, photos: list[Path]) -> float:
    """Photos per second of a loop over requests, one after the other."""
    client, server = OpenAI(base_url=url, api_key="none"), ChatServer(url, "a model")
    started = time.monotonic()
    for path in photos:
        question = server.question(server.picture(path), Decoding("Describe it."), 0)
        client.chat.completions.create(**question, max_tokens=30)
    return len(photos) / (time.monotonic() - started)


def command_rate(url: str, folder: Path, at_once: int) -> float:
    """Photos per second of the command, without its start."""
    words = ["--server", url, "--model", "a model", "--out", str(folder / f"out{at_once}")]
    run(["caption", str(folder / "photos"), *words, "--batch", str(at_once)], folder)
    match = _RATE.search((folder / "bench.log").read_text(encoding="utf-8"))
    assert match is not None
    return float(match[1])


def main() -> None:
    spawning = multiprocessing.get_context("spawn")
    address, theirs = spawning.Pipe()
    process = spawning.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    url = address.recv()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photos = write_photos(folder / "photos")
        plain = loop_rate(url, photos[:N_LOOP])
        rates = {at_once: command_rate(url, folder, at_once) for at_once in AT_ONCE}
    process.terminate()
    lines = [["a plain loop of requests", f"{plain:.1f}", "1.0"]]
    lines += [
        [f"`caption --server --batch {n}`", f"{rate:.1f}", f"{rate / plain:.1f}"]
        for n, rate in rates.items()
    ]
    body = table(["what", "images/s", "times the loop"], lines) + (
        f"\n{N_PHOTOS} photos of 640 x 480, a server that takes {ANSWER_S:g} s an answer, at a "
        f"load of {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores. Starting (2 s) is not "
        "included.\n"
    )
    publish("Server", "python -m benchmarks.server", body)


if __name__ == "__main__":
    main()
