"""Grad-CAM of captions compared with the forward pass alone: time and memory.

Usage: python -m benchmarks.gradcam
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.record import publish, table
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.pictures.captioners.fitted import CLASSES, NO_PROMPT, Fitted
from bias_pipeline.pictures.forced_captions import FittedForced, WrittenCaption
from bias_pipeline.pictures.gradcam.layers import LayerSearch, MapLayer
from bias_pipeline.pictures.gradcam.maps import Target, maps

N_CAPTIONS, BATCH, N_TOKENS, N_WORDS, ROUNDS = 1000, 32, 12, 1400, 3
TARGET = 3.0  # times the forward pass


def captioner(kind: str, folder: Path) -> FittedForced:
    """One of usual sizes, with random weights."""
    torch.manual_seed(0)
    fitted = Fitted(kind, CLASSES[kind](NO_PROMPT), tuple(f"w{n}" for n in range(N_WORDS)))
    folder.mkdir()
    fitted.save(folder, fitted.network().state_dict(), "# Random\n")
    return FittedForced(find_pretrained(str(folder), None), torch.device("cpu"))


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds, the least of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def peak() -> float:
    """The process's largest memory so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table_lines(kind: str, folder: Path) -> list[str]:
    """Forward pass and maps of the same captions."""
    model = captioner(kind, folder)
    generator = np.random.default_rng(0)
    shape = (model.side, model.side, 3)
    pictures: list[Any] = [
        model.prepare(Image.fromarray(generator.integers(0, 256, shape, np.uint8)))
        for _ in range(BATCH)
    ]
    tokens = generator.integers(4, N_WORDS, (BATCH, N_TOKENS)).tolist()
    captions = [WrittenCaption("", [2], line, []) for line in tokens]
    layer: MapLayer = LayerSearch(model, pictures[:2], captions[0]).find()
    rounds = -(-N_CAPTIONS // BATCH)

    @torch.no_grad()
    def forward() -> None:
        for _ in range(rounds):
            model.logits(pictures, captions)

    def draw_maps() -> None:
        for _ in range(rounds):
            maps(model, layer, pictures, captions, [[Target("w", [3])]] * BATCH, [4])

    plain, before = seconds(forward), peak()
    whole = seconds(draw_maps)
    met = "met" if whole <= TARGET * plain else "missed"
    return [
        f"{kind}, layer {layer.name}", f"{plain:.2f}", f"{whole:.2f}",
        f"{whole / plain:.2f} ({met})", f"{peak() - before:.0f}",
    ]  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        lines = [table_lines(kind, Path(place) / kind) for kind in CLASSES]
    header = [
        f"{N_CAPTIONS:,} captions", "forward pass (s)", "with maps (s)",
        f"times the forward pass, target {TARGET:.0f}", "more memory (MB)",
    ]  # fmt: skip
    note = (
        f"\nRandom weights of usual sizes, captions of {N_TOKENS} words, batches of {BATCH}, one "
        f"thread, processor time, the best of {ROUNDS}. Memory: by how much maps raised the "
        "process's peak above that of the forward pass.\n"
    )
    publish("Grad-CAM", "python -m benchmarks.gradcam", table(header, lines) + note)


if __name__ == "__main__":
    main()
