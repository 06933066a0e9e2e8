"""``encoder=sat``: Show, Attend and Tell (Xu et al. 2015) as a captioner with a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bias_pipeline.declared import Count, Dropout, NotNegative, Range
from bias_pipeline.pictures.captioners.backbones import (
    AnnotationBackbone,
    Backbone,
    BackboneInputs,
    BoxBackbone,
    PixelBackbone,
    PublishedBackbone,
)
from bias_pipeline.pictures.captioners.prompt import (
    N_SPECIAL,
    AnswerNumbers,
    Prompt,
    PromptCaptioner,
)
from bias_pipeline.pictures.vision.networks import (
    ANNOTATIONS,
    BOXES,
    BackboneName,
    find_network,
    is_network,
)

if TYPE_CHECKING:
    from bias_pipeline.pictures.captioners.sat_net import SatNet

VERSION = 1  # raise it whenever any prediction changes
Side = Annotated[int, Range(low=32, high=1024)]


@dataclass(frozen=True)
class Sat(PromptCaptioner):
    """A description of the network; ``build`` makes the network with PyTorch."""

    prompt: Prompt  # the prompt for the group
    # The equations: of the `paper`, of a widely used `tutorial` in PyTorch, or of `artemis`, which
    # differ from the tutorial's only in the initial word probabilities when fitted to write (see
    # `Design`). `encoder=sat_tutorial` and `encoder=sat_artemis` also have the sizes and training.
    recipe: Literal["paper", "tutorial", "artemis"] = "paper"
    # The vision network: `own`, a small convolutional network trained from scratch with the rest;
    # `annotations`, the data set's objects; `boxes`, objects with their boxes; a published network,
    # frozen: `efficientnet_lite0` of a package, or `timm:NAME` or `hf:NAME`, a folder or a name on
    # the hub
    backbone: BackboneName = "own"
    side: Side = 64  # pixels a side of the square input
    # Channels of the first layer of the `own` network; objects are described by four times as many
    # numbers
    width: Count = 16
    embedding_dim: Count = 64  # size of a word's vector
    hidden_dim: Count = 128  # size of the state
    attention_dim: Count = 64  # size of the attention's hidden layer
    dropout: Dropout = 0.5  # on the state before the next word, in [0, 1)
    # Weight of the loss on attention that is not spread over all regions by the end (equation 14)
    attention_penalty: NotNegative = 0.0
    # Whether weights start as He et al. (2015) draw them, as in ImageCaptioner2, or as PyTorch
    # draws them
    he: bool = False
    cache: str | None = None  # folder that caches the pictures as arrays, None for no cache

    @property
    def spec(self) -> Mapping[str, object]:
        """The settings that decide predictions, which do not include the cache."""
        settings = asdict(self)
        for key in ("cache", "backbone", "side", "width"):
            settings.pop(key)
        return {"version": VERSION, **settings, "backbone": dict(self.visual.spec)}

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        backbone = str(settings.get("backbone", ""))
        return {"backbone": dict(find_network(backbone).files)} if is_network(backbone) else {}

    @property
    def visual(self) -> Backbone:
        if self.backbone == ANNOTATIONS:
            return AnnotationBackbone(4 * self.width)
        if self.backbone == BOXES:
            return BoxBackbone(4 * self.width)
        if is_network(self.backbone):
            return PublishedBackbone(self.backbone, self.cache)
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
        """The network with fresh weights; with ``n_groups``, captions are written for a group."""
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
