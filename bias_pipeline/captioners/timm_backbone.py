"""``encoder.backbone=timm:NAME``: a frozen network of timm; each picture is encoded once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.captioners.backbones import BackboneInputs, PictureBackbone, pictures_of
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.models.timm_networks import TimmRegions, find_timm
from bias_pipeline.vision.drawn import VERSION as PIXELS_VERSION

if TYPE_CHECKING:
    from torch import nn

VERSION = 1  # raise it whenever any region changes


@dataclass(frozen=True)
class TimmBackbone(PictureBackbone):
    """The last grid, or the tokens, of a frozen network.

    Regions are stored as float16 for all seeds, recipes and sides of a metric.

    Attributes:
        model: a folder, or a name on the hub.
        cache: folder that caches the regions, None for no cache.
        device: where to compute; ``auto`` is the first GPU if there is one.
    """

    model: str
    cache: str | None = None
    device: str = "auto"

    @property
    def spec(self) -> Mapping[str, object]:
        """The network by its digests, not its path."""
        versions = [VERSION, PIXELS_VERSION]
        return {"sees": "regions", "version": versions, "files": dict(find_timm(self.model).files)}

    def require(self) -> None:
        """See the base."""
        find_timm(self.model)

    def read(self, data: LabelledCaptions) -> RegionInputs:
        """The regions of each picture."""
        from bias_pipeline.inference.regions import regions_of

        pictures, model = pictures_of(data), find_timm(self.model)
        regions = regions_of(
            pictures,
            self.cache,
            self.spec,
            self.model,
            lambda: TimmRegions(model, device_of(self.device)),
        )
        return RegionInputs(regions)

    def build(self, inputs: BackboneInputs) -> nn.Module:
        """A network that returns the stored regions."""
        assert isinstance(inputs, RegionInputs)
        from bias_pipeline.captioners.backbone_nets import PassedThrough

        return PassedThrough(inputs.table.shape[2])


@dataclass(frozen=True, eq=False)
class RegionInputs(BackboneInputs):
    """Regions computed by a frozen network.

    Attributes:
        table: (N, R, D) float16.
    """

    table: npt.NDArray[np.float16]

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``regions`` (B, R, D)."""
        return {"regions": np.array(self.table[rows])}
