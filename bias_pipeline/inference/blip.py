"""BLIP as a pair of embedders, and as a judge of a picture and a text together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bias_pipeline.inference.embedders import DualEncoder, Images, Normalise, Queries
from bias_pipeline.inference.matching import PairMatcher, PhotoHalf, TextHalf
from bias_pipeline.models.pretrained import Pretrained, device_of
from bias_pipeline.vision.people import Crop

if TYPE_CHECKING:
    from bias_pipeline.models.blip import BlipModel


def blip_dual(
    model: Pretrained, crop: Crop, device: str, cache: str | None, normalise: Normalise = "both"
) -> DualEncoder:
    """A BLIP as a pair of embedders, with its mode that judges pairs.

    Args:
        model: that was found.
        crop: what of pictures is shown, see :func:`~bias_pipeline.vision.people.look`.
        device: where it computes.
        cache: folder of vectors, None to keep them in memory, as what is judged in pairs is.
        normalise: whose vectors are of length 1.
    """
    own = BlipHalves(model, device)
    images = Images(own, cache, crop=crop, normalise=normalise == "both")
    return DualEncoder(images, Queries(own, cache), PairMatcher(own, crop))


@dataclass(frozen=True)
class BlipHalves:
    """A BLIP that was found.

    Attributes:
        model: the same.
        device: where it computes.
    """

    model: Pretrained
    device: str

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self.model.name

    @property
    def spec(self) -> Mapping[str, object]:
        """By its digests."""
        return {"kind": "blip", "files": dict(self.model.files)}

    @property
    def judge(self) -> BlipModel:
        """The network, loaded when it is first asked."""
        from bias_pipeline.models.blip import loaded

        return loaded(self.model, device_of(self.device))

    def photos(self, *, normalize: bool) -> PhotoHalf:
        """The half of pictures."""
        return PhotoHalf(self.judge, normalize)

    def texts(self) -> TextHalf:
        """The half of texts."""
        return TextHalf(self.judge)
