"""``encoder=hf_lora``: a published model is fine-tuned to name the group, by few weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.captioners.published_judge import VERSION as ASKED_VERSION
from bias_pipeline.captioners.published_judge import PublishedJudge
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.declared import Count, Dropout
from bias_pipeline.encoders.base import IntArray, Items, NetEncoder
from bias_pipeline.io.extras import LORA
from bias_pipeline.models.picture_text import PictureText, Question
from bias_pipeline.vision.pixels import VERSION as PIXELS_VERSION

if TYPE_CHECKING:
    from bias_pipeline.captioners.tuned_net import TunedNet

VERSION = 1  # raise it whenever any prediction changes


@dataclass(frozen=True)
class TunedJudge(PublishedJudge, NetEncoder):
    """An image-text model of transformers, fine-tuned by LoRA (Hu et al., ICLR 2022).

    All weights stay as they are; beside each linear layer a product of two matrices of rank
    ``rank`` is learnt, fresh for every attacker.

    Attributes:
        rank: of what is learnt beside a layer.
        alpha: how much it counts: its product is multiplied by ``alpha / rank``.
        dropout: on its inputs, in [0, 1).

    Example:
        >>> from bias_pipeline.captioners.prompt import Prompt
        >>> TunedJudge(Prompt("gender"), "Salesforce/blip-image-captioning-large").rank
        8
    """

    rank: Count = 8
    alpha: Count = 16
    dropout: Dropout = 0.05

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, wherever it lies, and all that decides what is learnt."""
        own = asdict(self)
        for key in ("model", "revision"):
            own.pop(key)
        versions = [VERSION, ASKED_VERSION, PIXELS_VERSION]
        return {**own, "versions": versions, "files": dict(self.found.files)}

    def require(self) -> None:
        """See the base."""
        LORA.require()
        super().require()

    def read(self, data: Labelled) -> Asking:
        """What is asked about each caption.

        Raises:
            NotApplicableError: if there are tasks to guess, or no pictures.
        """
        return Asking(tuple(self.questions(data)))

    def build(self, inputs: Asking) -> TunedNet:
        """The model, with fresh weights to learn beside its own.

        Raises:
            BiasPipelineError: if the model cannot be loaded.
        """
        import torch

        from bias_pipeline.captioners.tuned_net import TunedNet

        model = PictureText(self.found, torch.device("cpu"), self.side)
        return TunedNet(model, inputs.questions, self.rank, self.alpha, self.dropout)


@dataclass(frozen=True, eq=False)
class Asking(Items):
    """N questions; a model's own vocabulary needs nothing of those that are learnt from.

    Attributes:
        questions: about each caption and its picture.
    """

    questions: Sequence[Question]

    @cached_property
    def lengths(self) -> IntArray:
        """(N,) words before the answer."""
        return np.array([len(own.before.split()) for own in self.questions], np.int64)

    def fit(self, train: IntArray) -> Asking:
        """Itself."""
        del train
        return self

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """Which questions: what a question is made of has other names and shapes in each model."""
        return {"rows": np.asarray(rows, np.int64)}
