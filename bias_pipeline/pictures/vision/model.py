"""A published vision network on disk, and its regions of pictures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array
from bias_pipeline.errors import DataError
from bias_pipeline.models.pretrained import numbers_of

if TYPE_CHECKING:
    import torch

    from bias_pipeline.pictures.vision.net import VisionNet

MOST_PIXELS = 1024  # a side


@dataclass(frozen=True)
class VisionModel(ABC):
    name: str  # as the user wrote it
    folder: Path  # where it lies
    side: int  # of the square pictures it takes, in pixels
    mean: tuple[float, ...]  # subtracted from each channel, which is in [0, 1]
    std: tuple[float, ...]  # divided by
    files: Mapping[str, str]  # name to SHA-256 (hex) of all files that decide its output

    @abstractmethod
    def load(self) -> VisionNet:
        """The network with its weights, on the CPU."""


class VisionRegions:
    """Pictures as the last grid of a frozen network, or as its tokens."""

    batch_size: ClassVar[int] = 32  # pictures per batch

    def __init__(self, model: VisionModel, device: torch.device) -> None:
        self._model, self._device = model, device
        self._network = model.load().to(device)

    @property
    def side(self) -> int:
        return self._model.side

    def extract(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
        return self.regions(pixels).astype(np.float16)

    def regions(self, pixels: npt.NDArray[np.uint8]) -> Float32Array:
        """(N, S, S, 3) pictures to (N, R, D)."""
        import torch

        turned = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
        with torch.inference_mode():
            return numbers_of(self._network(turned.to(self._device)), self._model.name)


def square_side(size: tuple[object, object], path: Path, key: str) -> int:
    height, width = size
    if height != width or not isinstance(height, int) or not 1 <= height <= MOST_PIXELS:
        raise DataError(
            f"{path}: {key} {[height, width]} is not a square of at most {MOST_PIXELS} pixels a "
            "side"
        )
    return height


def channels(values: object, path: Path, key: str) -> tuple[float, ...]:
    numbers = values if isinstance(values, list) else []
    if len(numbers) != 3 or not all(isinstance(n, int | float) for n in numbers):
        raise DataError(f"{path}: {key} must be three numbers")
    return tuple(float(number) for number in numbers)
