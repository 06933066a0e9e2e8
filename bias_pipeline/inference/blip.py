"""BLIP's two halves, and its mode that judges a picture and a text together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bias_pipeline.inference.matching import FoundTwoModes
from bias_pipeline.models.pretrained import device_of

if TYPE_CHECKING:
    from bias_pipeline.models.blip import BlipModel


@dataclass(frozen=True)
class BlipHalves(FoundTwoModes):
    """A BLIP for retrieval that was found."""

    @property
    def spec(self) -> Mapping[str, object]:
        """By its digests."""
        return {"kind": "blip", "files": dict(self.model.files)}

    @property
    def net(self) -> BlipModel:
        """See the base."""
        from bias_pipeline.models.blip import loaded

        return loaded(self.model, device_of(self.device))
