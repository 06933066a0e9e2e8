"""``encoder.backbone=timm:NAME``: a frozen network of timm sees; each picture is looked at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.captioners.backbones import BackboneInputs, PictureBackbone, pictures_of
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.encoders.base import IntArray
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.models.timm_networks import TimmRegions, find_timm
from bias_pipeline.vision.pixels import VERSION as PIXELS_VERSION

if TYPE_CHECKING:
    from torch import nn

VERSION = 1  # raise it whenever any region changes


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
        from bias_pipeline.inference.regions import regions_of

        pictures, model = pictures_of(data), find_timm(self.model)
        found = regions_of(
            pictures,
            self.cache,
            self.spec,
            self.model,
            lambda: TimmRegions(model, device_of(self.device)),
        )
        return RegionInputs(found)

    def build(self, inputs: BackboneInputs) -> nn.Module:
        """A network that passes regions on."""
        assert isinstance(inputs, RegionInputs)
        from bias_pipeline.captioners.backbone_nets import Passed

        return Passed(inputs.table.shape[2])


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
