"""CLIP as a pair of embedders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from bias_pipeline.inference.embedders import DualEncoder, Images, Normalise, Queries
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.pretrained import Pretrained, device_of
from bias_pipeline.vision.people import Crop


def clip_dual(
    model: Pretrained, crop: Crop, device: str, cache: str | None, normalise: Normalise = "both"
) -> DualEncoder:
    """A CLIP as a pair of embedders.

    Args:
        model: that was found.
        crop: what of pictures is shown, see :func:`~bias_pipeline.vision.people.look`.
        device: where it computes.
        cache: folder of vectors, None to keep them in memory.
        normalise: whose vectors are of length 1.
    """
    own = ClipHalves(model, device)
    images = Images(own, cache, crop=crop, normalise=normalise == "both")
    return DualEncoder(images, Queries(own, cache))


@dataclass(frozen=True)
class ClipHalves:
    """A CLIP or SigLIP that was found.

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
        return {"files": dict(self.model.files)}

    def photos(self, *, normalize: bool) -> ClipPhotos:
        """The half of pictures."""
        return _photos(self.model, self.device, normalize)

    def texts(self) -> ClipTexts:
        """The half of texts."""
        return _texts(self.model, self.device)


@lru_cache(maxsize=1)
def _photos(model: Pretrained, device: str, normalise: bool) -> ClipPhotos:
    """The model that was asked last."""
    return ClipPhotos(model, device_of(device), normalize=normalise)


@lru_cache(maxsize=1)
def _texts(model: Pretrained, device: str) -> ClipTexts:
    """The model that was asked last."""
    return ClipTexts(model, device_of(device), normalize=True)
