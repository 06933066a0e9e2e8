"""The two halves of a model of open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bias_pipeline.inference.halves import FoundOneSpace
from bias_pipeline.models.pretrained import device_of

if TYPE_CHECKING:
    from bias_pipeline.models.open_clip import OpenClipModel


@dataclass(frozen=True)
class OpenClipHalves(FoundOneSpace):
    """A model of open_clip that was found.

    Attributes:
        quick: whether it computes QuickGELU.
    """

    quick: bool

    @property
    def spec(self) -> Mapping[str, object]:
        """By its digests, and what is computed of them."""
        digests = sorted(self.model.files.values())  # whatever the files are called
        return {"kind": self.model.kind, "files": digests, "quick_gelu": self.quick}

    @property
    def net(self) -> OpenClipModel:
        """See the base."""
        from bias_pipeline.models.open_clip import loaded

        return loaded(self.model, self.quick, device_of(self.device))
