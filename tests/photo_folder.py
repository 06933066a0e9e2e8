"""Folders of small pictures made by hand."""

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


def write_equal_sizes(folder: Path) -> Path:
    """Two pictures, 1.bmp and 2.bmp, of as many bytes each."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(1)
    for number in (1, 2):
        noise = generator.integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(noise).save(folder / f"{number}.bmp")
    return folder


def swap(folder: Path) -> None:
    """Have the two of :func:`write_equal_sizes` change places."""
    (folder / "1.bmp").rename(folder / "3")
    (folder / "2.bmp").rename(folder / "1.bmp")
    (folder / "3").rename(folder / "2.bmp")
