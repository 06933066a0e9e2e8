"""FIBER as a pair of embedders, and as a judge of a picture and a text together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bias_pipeline.errors import UsageError
from bias_pipeline.inference.embedders import DualEncoder, Images, Normalise, Queries
from bias_pipeline.inference.matching import PairMatcher, PhotoHalf, TextHalf
from bias_pipeline.models.pretrained import Pretrained, device_of
from bias_pipeline.vision.people import Crop

if TYPE_CHECKING:
    from bias_pipeline.models.fiber.model import FiberModel


def fiber_dual(
    model: FiberHalves, crop: Crop, cache: str | None, normalise: Normalise = "both"
) -> DualEncoder:
    """A FIBER as a pair of embedders, with its fused mode.

    Args:
        model: that was found.
        crop: what of pictures is shown, see :func:`~bias_pipeline.vision.people.look`.
        cache: folder of vectors, None to keep them in memory, as what is judged in pairs is.
        normalise: whose vectors are of length 1.
    """
    images = Images(model, cache, crop=crop, normalise=normalise == "both")
    return DualEncoder(images, Queries(model, cache), PairMatcher(model, crop))


@dataclass(frozen=True)
class FiberHalves:
    """A FIBER that was found.

    Attributes:
        model: the same.
        device: where it computes.
        side: of a picture in pixels, None for the file's own.
        longest: tokens that are read of a text.
    """

    model: Pretrained
    device: str
    side: int | None
    longest: int

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self.model.name

    @property
    def spec(self) -> Mapping[str, object]:
        """By its digests, and how it is shown what."""
        digests = sorted(self.model.files.values())  # whatever the files are called
        return {"kind": "fiber", "files": digests, "side": self.side, "longest": self.longest}

    @property
    def loaded(self) -> FiberModel:
        """The network, loaded when it is first asked."""
        from bias_pipeline.models.fiber.model import loaded

        return loaded(self.model, self.side, self.longest, device_of(self.device))

    def photos(self, *, normalize: bool) -> PhotoHalf:
        """The half of pictures."""
        return PhotoHalf(self.loaded, normalize)

    def texts(self) -> TextHalf:
        """The half of texts."""
        return TextHalf(self.loaded)

    @property
    def judge(self) -> FiberModel:
        """The fused mode.

        Raises:
            UsageError: if the file was not trained to judge pairs.
        """
        if not self.loaded.matches:
            raise UsageError(
                f"metric.rerank: the weights in {self.name} have no itm_score, which judges a "
                "picture and a text together; name a file that has, such as fiber_pretrain.ckpt, "
                "or set metric.rerank=null"
            )
        return self.loaded
