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
    """A model of open_clip on disk.

    Attributes:
        quick: whether it computes QuickGELU.
    """

    quick: bool

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files and its settings."""
        digests = sorted(self.model.files.values())  # independent of file names
        return {"kind": self.model.kind, "files": digests, "quick_gelu": self.quick}

    @property
    def net(self) -> OpenClipModel:
        """See the base."""
        from bias_pipeline.models.open_clip import loaded

        return loaded(self.model, self.quick, device_of(self.device))
