"""CLIP's two halves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from bias_pipeline.inference.embedders import Found
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.pretrained import Pretrained, device_of


@dataclass(frozen=True)
class ClipHalves(Found):
    """A CLIP or SigLIP that was found."""

    @property
    def spec(self) -> Mapping[str, object]:
        """By its digests."""
        return {"files": dict(self.model.files)}

    def photos(self, *, normalize: bool) -> ClipPhotos:
        """The half of pictures, of vectors of length 1 or as the model makes them."""
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
