"""FIBER's two halves, and its fused mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bias_pipeline.errors import UsageError
from bias_pipeline.inference.matching import FoundTwoModes
from bias_pipeline.models.pretrained import device_of

if TYPE_CHECKING:
    from bias_pipeline.models.fiber.model import FiberModel


@dataclass(frozen=True)
class FiberHalves(FoundTwoModes):
    """A FIBER that was found.

    Attributes:
        side: of a picture in pixels, None for the file's own.
        longest: tokens that are read of a text.
    """

    side: int | None
    longest: int

    @property
    def spec(self) -> Mapping[str, object]:
        """By its digests, and how it is shown what."""
        digests = sorted(self.model.files.values())  # whatever the files are called
        return {"kind": "fiber", "files": digests, "side": self.side, "longest": self.longest}

    @property
    def net(self) -> FiberModel:
        """See the base."""
        from bias_pipeline.models.fiber.model import loaded

        return loaded(self.model, self.side, self.longest, device_of(self.device))

    @property
    def judge(self) -> FiberModel:
        """The fused mode.

        Raises:
            UsageError: if the file was not trained to judge pairs.
        """
        net = self.net
        if not net.matches:
            raise UsageError(
                f"metric.rerank: the weights in {self.name} have no itm_score, which judges a "
                "picture and a text together; name a file that has, such as fiber_pretrain.ckpt, "
                "or set metric.rerank=null"
            )
        return net
