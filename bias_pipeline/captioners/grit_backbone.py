"""GRIT's backbone: Swin transformer and region decoder, fresh or with released weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.captioners.backbones import (
    BackboneInputs,
    PictureBackbone,
    PixelInputs,
    pictures_of,
)
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.models.grit.sizes import GritSize
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.vision.drawn import VERSION as PIXELS_VERSION
from bias_pipeline.vision.drawn import pixel_table

if TYPE_CHECKING:
    import torch
    from torch import nn

VERSION = 1  # raise it whenever features of the released detector change


@dataclass(frozen=True)
class DetectorBackbone(PictureBackbone):
    """A Swin transformer and a region decoder, trained from scratch with the captioner."""

    size: GritSize  # of all parts
    cache: str | None = None  # folder that caches the pictures as arrays, None for no cache

    @property
    def spec(self) -> Mapping[str, object]:
        """All settings except the cache."""
        return {"sees": "regions", "version": PIXELS_VERSION, **asdict(self.size)}

    def read(self, data: LabelledCaptions) -> PixelInputs:
        """The pictures as arrays."""
        return PixelInputs(pixel_table(pictures_of(data), self.size.side, self.cache))

    def build(self, inputs: BackboneInputs) -> nn.Module:
        """See :class:`~bias_pipeline.models.grit.detector.GritDetector`."""
        del inputs
        from bias_pipeline.models.grit.detector import GritDetector

        return GritDetector(self.size)


@dataclass(frozen=True)
class ReleasedBackbone(PictureBackbone):
    """The same with frozen weights of a file; each picture is encoded once.

    Features are stored as float16, for all seeds and sides of a metric.
    """

    size: GritSize  # of all parts
    weights: str  # file of a captioner or a detector, see `checkpoint`
    cache: str | None = None  # folder that caches the features, None for no cache
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one

    @property
    def spec(self) -> Mapping[str, object]:
        """The file by its digest, wherever it lies."""
        versions, settings = [VERSION, PIXELS_VERSION], asdict(self.size)
        return {"sees": "regions", "versions": versions, **settings, "file": digest_of(self.path)}

    @property
    def path(self) -> Path:
        """Of the weights."""
        return Path(self.weights).expanduser()

    def require(self) -> None:
        """See the base."""
        if not self.path.is_file():
            raise ResourceError(
                f"encoder.weights={self.weights}: no such file; fetch GRIT's weights by hand"
            )

    def read(self, data: LabelledCaptions) -> VisualInputs:
        """Grid and regions of each picture."""
        from bias_pipeline.inference.pictures import regions_of

        pictures = pictures_of(data)
        name = self.path.name
        return VisualInputs(
            regions_of(pictures, self.cache, self.spec, name, self._eyes), self.size
        )

    def build(self, inputs: BackboneInputs) -> nn.Module:
        """A network that returns the stored features."""
        assert isinstance(inputs, VisualInputs)
        from bias_pipeline.models.grit.detector import PassedFeatures

        return PassedFeatures(self.size)

    def _eyes(self) -> _Eyes:
        return _Eyes(self.size, self.path, device_of(self.device))


class _Eyes:
    """A released detector that computes features.

    Args:
        size: of all parts.
        path: of its weights.
        device: where to look.

    Raises:
        BiasPipelineError: if the file is broken or of another size.
    """

    together: ClassVar[int] = 8  # pictures per batch

    def __init__(self, size: GritSize, path: Path, device: torch.device) -> None:
        from bias_pipeline.models.grit.checkpoint import load_detector, read_checkpoint
        from bias_pipeline.models.grit.detector import GritDetector

        self.side, self._device = size.side, device
        self._net = GritDetector(size)
        load_detector(self._net, read_checkpoint(path), f"encoder.size={size.name}")
        self._net.to(device).eval()

    def look(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
        """(B, G * D + R * C) grid and regions of B pictures, end to end."""
        import torch

        turned = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
        with torch.inference_mode():
            outputs = self._net(turned.to(self._device))
        flat = torch.cat([output.flatten(1) for output in outputs], dim=1)
        return flat.to(torch.float16).cpu().numpy()


@dataclass(frozen=True, eq=False)
class VisualInputs(BackboneInputs):
    """Stored features of a detector."""

    table: npt.NDArray[np.float16]  # (N, G * D + R * C) float16, the grid and then the regions
    size: GritSize  # of the detector

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``grid`` (B, G, D) and ``regions`` (B, R, C)."""
        vectors = np.array(self.table[rows])
        cut = vectors.shape[1] - self.size.n_regions * self.size.size
        grid, regions = vectors[:, :cut], vectors[:, cut:]
        return {
            "grid": grid.reshape(len(vectors), -1, self.size.grid_dim),
            "regions": regions.reshape(len(vectors), -1, self.size.size),
        }
