"""A captioner that looks at one place of the picture, whatever it shows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from bias_pipeline.pictures.forced_captions import WrittenCaption

WORDS = ("<start>", "a", "man", "woman", "walks")
SIDE = 32


class Looking(nn.Module):
    """Brightness, then only that of one quarter of the picture, then words."""

    def __init__(self, rows: slice, columns: slice) -> None:
        super().__init__()
        self.brightness = nn.Conv2d(3, 1, 4, stride=4, bias=False)
        nn.init.constant_(self.brightness.weight, 0.1)
        self.quarter = Quarter(rows, columns)
        self.words = nn.Embedding(len(WORDS), len(WORDS))

    def forward(self, pixels: Tensor, tokens: Tensor) -> Tensor:
        """(B, L, V) logits: the brighter the quarter, the likelier every man."""
        bright = self.quarter(self.brightness(pixels)).mean(dim=(1, 2, 3))
        man = torch.zeros(len(WORDS))
        man[2] = 1.0
        logits: Tensor = self.words(tokens) + bright[:, None, None] * man
        return logits


class Quarter(nn.Module):
    """Leaves one part of a grid."""

    def __init__(self, rows: slice, columns: slice) -> None:
        super().__init__()
        mask = torch.zeros(8, 8)
        mask[rows, columns] = 1.0
        self.register_buffer("mask", mask)

    def forward(self, grid: Tensor) -> Tensor:
        """The same grid, zero elsewhere."""
        return grid * self.mask


class PlantedCaptioner:
    """Writes "a man walks" of every picture; see the protocol ``ForcedCaptioner``."""

    name, side = "planted", SIDE

    def __init__(self, rows: slice = slice(0, 4), columns: slice = slice(0, 4)) -> None:
        torch.manual_seed(0)
        self.network = Looking(rows, columns).eval()

    def prepare(self, photo: Image.Image) -> Tensor:
        pixels = np.asarray(photo.resize((SIDE, SIDE)), np.float32) / 255
        return torch.from_numpy(pixels).permute(2, 0, 1)

    def pixels(self, picture: Tensor) -> Tensor:
        return picture

    def write(self, pictures: Sequence[Tensor]) -> list[WrittenCaption]:
        spans = [(0, 1), (2, 5), (6, 11)]
        return [WrittenCaption("a man walks", [0], [1, 2, 4], spans) for _ in pictures]

    def logits(self, pictures: Sequence[Tensor], captions: Sequence[Any]) -> Tensor:
        lines = [[*caption.before, *caption.tokens] for caption in captions]
        logits: Tensor = self.network(torch.stack(list(pictures)), torch.tensor(lines))
        return logits

    def first_token(self, word: str) -> int | None:
        return WORDS.index(word) if word in WORDS else None
