"""FIBER's two halves, and its fused mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bias_pipeline.inference.cross_encoder import FoundTwoModes
from bias_pipeline.models.fiber.sizes import Head
from bias_pipeline.models.pretrained import device_of

if TYPE_CHECKING:
    from bias_pipeline.models.fiber.model import FiberModel


@dataclass(frozen=True)
class FiberHalves(FoundTwoModes):
    """A FIBER on disk.

    Attributes:
        side: pixels a side of a picture, None for the file's own.
        longest: tokens that are read of a text.
        head: the matching head, see :func:`~bias_pipeline.models.fiber.checkpoint.read_fiber`.
    """

    judging: ClassVar[str] = "fiber_pretrain.ckpt"

    side: int | None
    longest: int
    head: Head = "rank_output"

    @property
    def spec(self) -> Mapping[str, object]:
        """The digests of its files and its settings."""
        digests = sorted(self.model.files.values())  # independent of file names
        settings = {"kind": "fiber", "files": digests, "side": self.side, "longest": self.longest}
        return settings | ({"head": self.head} if self.head != "rank_output" else {})

    @property
    def net(self) -> FiberModel:
        """See the base."""
        from bias_pipeline.models.fiber.model import loaded

        return loaded(self.model, self.side, self.longest, device_of(self.device), self.head)
