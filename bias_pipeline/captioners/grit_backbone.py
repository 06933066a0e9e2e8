"""What GRIT sees with: pixels, and its own Swin transformer and region decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from bias_pipeline.captioners.backbones import (
    Backbone,
    BackboneInputs,
    PixelInputs,
    pictures_of,
)
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.models.grit.sizes import GritSize
from bias_pipeline.vision.pixels import VERSION as PIXELS_VERSION
from bias_pipeline.vision.pixels import pixel_table

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class DetectorBackbone(Backbone):
    """A Swin transformer and a region decoder, trained from scratch with the captioner.

    Attributes:
        size: of all parts.
        cache: folder of the pictures as arrays, None to keep none.
    """

    needs: ClassVar[str] = "pictures"

    size: GritSize
    cache: str | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """All but where pictures are kept."""
        return {"sees": "regions", "version": PIXELS_VERSION, **asdict(self.size)}

    def digest(self, data: Labelled) -> str:
        """Of the pictures, their edits included."""
        return pictures_of(data).digest

    def read(self, data: Labelled) -> PixelInputs:
        """The pictures as arrays."""
        return PixelInputs(pixel_table(pictures_of(data), self.size.side, self.cache))

    def build(self, inputs: BackboneInputs) -> nn.Module:
        """See :class:`~bias_pipeline.models.grit.detector.Detector`."""
        del inputs
        from bias_pipeline.models.grit.detector import Detector

        return Detector(self.size)
