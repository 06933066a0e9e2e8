"""Folders of small pictures made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def write_photos(folder: Path, n_photos: int) -> Path:
    """Pictures of coloured noise in several shapes, named 1.png, 2.png, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for number in range(1, n_photos + 1):
        coarse = generator.integers(0, 256, (4, 5, 3), np.uint8)
        size = (40 + number % 7, 30 + number % 5)
        Image.fromarray(coarse).resize(size).save(folder / f"{number}.png")
    return folder


BROKEN = {"901.jpg": b"", "902.jpg": b"no picture", "903.png": b"\x89PNG\r\n\x1a\n"}


def break_some(folder: Path) -> None:
    """Add three files that are called photos and are none."""
    for name, content in BROKEN.items():
        (folder / name).write_bytes(content)
