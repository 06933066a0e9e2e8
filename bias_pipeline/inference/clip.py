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
    """A CLIP or SigLIP on disk."""

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files."""
        return {"files": dict(self.model.files)}

    def photos(self, *, normalize: bool) -> ClipPhotos:
        """The image encoder, with vectors of length 1 or the model's own."""
        return _photos(self.model, self.device, normalize)

    def texts(self) -> ClipTexts:
        """The text encoder."""
        return _texts(self.model, self.device)


@lru_cache(maxsize=1)
def _photos(model: Pretrained, device: str, normalise: bool) -> ClipPhotos:
    """The model that was asked last."""
    return ClipPhotos(model, device_of(device), normalize=normalise)


@lru_cache(maxsize=1)
def _texts(model: Pretrained, device: str) -> ClipTexts:
    """The model that was asked last."""
    return ClipTexts(model, device_of(device), normalize=True)
