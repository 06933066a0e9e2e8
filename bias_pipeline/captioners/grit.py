"""``encoder=grit``: GRIT (Nguyen et al. 2022) as a captioner that is prompted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from bias_pipeline.captioners.grit_backbone import DetectorBackbone
from bias_pipeline.captioners.prompt import Prompt
from bias_pipeline.captioners.prompted import PromptCaptioner, PromptedInputs
from bias_pipeline.models.grit.sizes import SIZES

if TYPE_CHECKING:
    from bias_pipeline.captioners.grit_net import GritNet

VERSION = 1  # raise it whenever any prediction changes


@dataclass(frozen=True)
class Grit(PromptCaptioner):
    """A description of the network; :meth:`build` makes it, with PyTorch.

    All of it is trained from scratch, on the answers alone. GRIT's own detector was trained before,
    on the boxes of Visual Genome; here, nobody tells the region decoder what is where.

    Attributes:
        prompt: what leads it to name the group.
        size: of the ``released`` network, or ``small`` (ours), for small pictures on a processor.
        second_gate: whether the gate on regions has the weights of the gate on the grid, as in the
            ``released`` network, or its own, as in the ``paper``.
        cache: folder of the pictures as arrays, None to keep none.
    """

    prompt: Prompt
    size: Literal["small", "released"] = "small"
    second_gate: Literal["released", "paper"] = "released"
    cache: str | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """What decides its predictions; where pictures are kept does not."""
        own = asdict(self)
        for key in ("cache", "size"):
            own.pop(key)
        return {"version": VERSION, **own, "backbone": dict(self.visual.spec)}

    @property
    def visual(self) -> DetectorBackbone:
        """How it sees."""
        return DetectorBackbone(SIZES[self.size], self.cache)

    def build(self, inputs: PromptedInputs) -> GritNet:
        """A network with fresh weights."""
        from bias_pipeline.captioners.grit_net import GritNet

        detector, words = self.visual.build(inputs.visual), inputs.words
        size = SIZES[self.size]
        return GritNet(detector, words.size, words.answers, size, self.second_gate)
