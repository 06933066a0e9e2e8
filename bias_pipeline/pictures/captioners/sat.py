"""``encoder=sat``: Show, Attend and Tell (Xu et al. 2015) as a prompted captioner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bias_pipeline.declared import Count, Dropout, NotNegative, Range, Text
from bias_pipeline.pictures.captioners.backbones import (
    AnnotationBackbone,
    Backbone,
    BackboneInputs,
    BoxBackbone,
    PixelBackbone,
    TimmBackbone,
)
from bias_pipeline.pictures.captioners.prompt import (
    N_SPECIAL,
    AnswerNumbers,
    Prompt,
    PromptCaptioner,
)
from bias_pipeline.pictures.timm_networks import find_timm

if TYPE_CHECKING:
    from bias_pipeline.pictures.captioners.sat_net import SatNet

VERSION = 1  # raise it whenever any prediction changes
ANNOTATIONS, BOXES, TIMM = "annotations", "boxes", "timm:"
BackboneName = Annotated[
    str,
    Text(r"own|annotations|boxes|timm:[^\x00-\x1f\x7f]+", "own, annotations, boxes or timm:NAME"),
]

Side = Annotated[int, Range(low=32, high=1024)]


@dataclass(frozen=True)
class Sat(PromptCaptioner):
    """A description of the network, which ``build`` makes with PyTorch."""

    prompt: Prompt  # the prompt for the group
    # Whose equations: the `paper`'s, those of a widely used `tutorial` in PyTorch, or `artemis`',
    # the same except the initial word probabilities when fitted to write (`Design`). Sizes and
    # training of the last two are `encoder=sat_tutorial` and `encoder=sat_artemis`.
    recipe: Literal["paper", "tutorial", "artemis"] = "paper"
    # The vision network: `own`, a small convolutional network trained from scratch with the rest;
    # `annotations`, the data set's objects; `boxes`, objects with their boxes; `timm:NAME`, a
    # frozen network of timm, a folder or a name on the hub
    backbone: BackboneName = "own"
    side: Side = 64  # pixels a side of the square input
    # Channels of the own network's first layer, or a fourth of the numbers that describe an object
    width: Count = 16
    embedding_dim: Count = 64  # size of a word's vector
    hidden_dim: Count = 128  # size of the state
    attention_dim: Count = 64  # size of the attention's hidden layer
    dropout: Dropout = 0.5  # on the state before the next word, in [0, 1)
    # Weight of attention that is not spread over all regions by the end (the paper's equation 14)
    attention_penalty: NotNegative = 0.0
    # Whether weights begin as He et al. (2015) draw them, as ImageCaptioner2 does; else as PyTorch
    # draws them.
    he: bool = False
    cache: str | None = None  # folder that caches the pictures as arrays, None for no cache

    @property
    def spec(self) -> Mapping[str, object]:
        """The settings that decide its predictions; the cache does not."""
        settings = asdict(self)
        for key in ("cache", "backbone", "side", "width"):
            settings.pop(key)
        return {"version": VERSION, **settings, "backbone": dict(self.visual.spec)}

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """A network of timm by the digests of its files."""
        backbone = str(settings.get("backbone", ""))
        if not backbone.startswith(TIMM):
            return {}
        return {"backbone": dict(find_timm(backbone.removeprefix(TIMM)).files)}

    @property
    def visual(self) -> Backbone:
        if self.backbone == ANNOTATIONS:
            return AnnotationBackbone(4 * self.width)
        if self.backbone == BOXES:
            return BoxBackbone(4 * self.width)
        if self.backbone.startswith(TIMM):
            return TimmBackbone(self.backbone.removeprefix(TIMM), self.cache)
        return PixelBackbone(self.side, self.width, cache=self.cache)

    def begin_to_write(self, network: SatNet, counts: Sequence[int]) -> None:
        from bias_pipeline.pictures.captioners.sat_net import DESIGNS

        if DESIGNS[self.recipe].frequent_first:
            network.init_word_frequencies(counts)

    def network(
        self,
        visual: BackboneInputs,
        vocabulary: Mapping[str, int],
        answers: AnswerNumbers,
        n_groups: int = 0,
    ) -> SatNet:
        """See the base; with ``n_groups`` its captions are grounded in a group."""
        from bias_pipeline.pictures.captioners.sat_net import DESIGNS, SatNet

        seeing = self.visual.build(visual)
        settings = asdict(self)
        keys = (
            "embedding_dim",
            "hidden_dim",
            "attention_dim",
            "dropout",
            "attention_penalty",
            "he",
        )
        n_words = len(vocabulary) + N_SPECIAL
        sizes = {key: settings[key] for key in keys}
        return SatNet(seeing, n_words, answers, DESIGNS[self.recipe], **sizes, n_groups=n_groups)
