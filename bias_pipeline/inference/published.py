"""The two halves of a BLIP or a BridgeTower, and their matching mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bias_pipeline.inference.cross_encoder import FoundTwoModes
from bias_pipeline.models.pretrained import device_of

if TYPE_CHECKING:
    from bias_pipeline.models.blip import BlipModel
    from bias_pipeline.models.bridgetower import BridgeTowerModel


@dataclass(frozen=True)
class PublishedHalves(FoundTwoModes):
    """Such a model on disk."""

    judging: ClassVar[str] = "BridgeTower/bridgetower-large-itm-mlm-itc"

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files."""
        return {"kind": self.model.kind, "files": dict(self.model.files)}

    @property
    def net(self) -> BlipModel | BridgeTowerModel:
        """See the base."""
        from bias_pipeline.models import blip, bridgetower

        module = blip if self.model.kind == "blip" else bridgetower
        return module.loaded(self.model, device_of(self.device))
