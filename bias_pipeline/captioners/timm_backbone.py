"""``encoder.backbone=timm:NAME``: a frozen network of timm sees; each picture is looked at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.captioners.backbones import BackboneInputs, PictureBackbone, pictures_of
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.encoders.base import IntArray
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.models.timm_networks import TimmModel, TimmRegions, find_timm
from bias_pipeline.vision.pixels import VERSION as PIXELS_VERSION
from bias_pipeline.vision.pixels import Filling, kept_table, read_pixels

if TYPE_CHECKING:
    from torch import nn

VERSION = 1  # raise it whenever any region changes
TOGETHER = 32  # pictures that are looked at at once


@dataclass(frozen=True)
class TimmBackbone(PictureBackbone):
    """The last grid, or the tokens, of a network whose weights stay as they are.

    Regions are kept in half precision, whatever looks at them: seeds, recipes, sides of a metric.

    Attributes:
        model: a folder, or a name on the hub.
        cache: folder of the regions, None to keep none.
        device: where to look; ``auto`` is the first GPU if there is one.
    """

    model: str
    cache: str | None = None
    device: str = "auto"

    @property
    def spec(self) -> Mapping[str, object]:
        """The network by its digests, wherever it lies."""
        versions = [VERSION, PIXELS_VERSION]
        return {"sees": "regions", "version": versions, "files": dict(find_timm(self.model).files)}

    def require(self) -> None:
        """See the base."""
        find_timm(self.model)

    def read(self, data: Labelled) -> RegionInputs:
        """The regions of each picture."""
        pictures, model = pictures_of(data), find_timm(self.model)
        key = f"regions {self.spec} {pictures.digest}"
        return RegionInputs(
            kept_table(self.cache, key, lambda: _regions(model, self.device, pictures))
        )

    def build(self, inputs: BackboneInputs) -> nn.Module:
        """A network that passes regions on."""
        assert isinstance(inputs, RegionInputs)
        from bias_pipeline.captioners.backbone_nets import Passed

        return Passed(inputs.table.shape[2])


def _regions(model: TimmModel, device: str, pictures: Pictures) -> Filling:
    """The regions of pictures, some pictures at a time."""
    network = TimmRegions(model, device_of(device))
    nothing = np.zeros((1, model.side, model.side, 3), np.uint8)
    shape = (len(pictures), *network.regions(nothing).shape[1:])

    def parts() -> Iterator[npt.NDArray[np.float16]]:
        for start in range(0, len(pictures), TOGETHER):
            rows = range(start, min(start + TOGETHER, len(pictures)))
            pixels = np.stack([read_pixels(pictures, row, model.side) for row in rows])
            yield network.regions(pixels).astype(np.float16)

    return Filling(shape, np.float16, parts())


@dataclass(frozen=True, eq=False)
class RegionInputs(BackboneInputs):
    """Regions that a frozen network saw.

    Attributes:
        table: (N, R, D) float16.
    """

    table: npt.NDArray[np.float16]

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``regions`` (B, R, D)."""
        return {"regions": np.array(self.table[rows])}
