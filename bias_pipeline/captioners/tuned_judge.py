"""``encoder=hf_lora``: a published model fine-tuned to name the group, with few weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import IntArray
from bias_pipeline.captioners.judge import VERSION as ASKED_VERSION
from bias_pipeline.captioners.judge import PublishedJudge
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Count, Dropout
from bias_pipeline.encoders.base import Items, NetEncoder
from bias_pipeline.io.machine import LORA
from bias_pipeline.models.picture_text import PictureText, Question
from bias_pipeline.vision.drawn import VERSION as PIXELS_VERSION

if TYPE_CHECKING:
    from bias_pipeline.captioners.tuned_net import TunedNet

VERSION = 1  # raise it whenever any prediction changes


@dataclass(frozen=True)
class TunedJudge(PublishedJudge, NetEncoder):
    """An image-text model of transformers, fine-tuned by LoRA (Hu et al., ICLR 2022).

    The model's weights are frozen; each linear layer gets a learnt product of two matrices of rank
    ``rank``, fresh for every attacker.

    Example:
        >>> from bias_pipeline.captioners.prompt import Prompt
        >>> TunedJudge(Prompt("gender"), "Salesforce/blip-image-captioning-large").rank
        8
    """

    rank: Count = 8  # of the learnt matrices
    alpha: Count = 16  # scale: the product is multiplied by `alpha / rank`
    dropout: Dropout = 0.05  # on its inputs, in [0, 1)

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, not its path, and the settings of training."""
        settings = asdict(self)
        for key in ("model", "revision"):
            settings.pop(key)
        versions = [VERSION, ASKED_VERSION, PIXELS_VERSION]
        return {**settings, "versions": versions, "files": dict(self.pretrained.files)}

    def require(self) -> None:
        """See the base."""
        LORA.require()
        super().require()

    def read(self, data: LabelledCaptions) -> Asking:
        """The question about each caption.

        Raises:
            NotApplicableError: if there are tasks to guess, or no pictures.
        """
        return Asking(tuple(self.questions(data)))

    def build(self, inputs: Asking) -> TunedNet:
        """The model, with fresh weights to learn.

        Raises:
            BiasPipelineError: if the model cannot be loaded.
        """
        import torch

        from bias_pipeline.captioners.tuned_net import TunedNet

        model = PictureText(self.pretrained, torch.device("cpu"), self.side)
        return TunedNet(model, inputs.questions, self.rank, self.alpha, self.dropout)


@dataclass(frozen=True, eq=False)
class Asking(Items):
    """N questions; they do not depend on the training part."""

    questions: Sequence[Question]  # about each caption and its picture

    @cached_property
    def lengths(self) -> IntArray:
        """(N,) words before the answer."""
        return np.array([len(question.before.split()) for question in self.questions], np.int64)

    def fit(self, train: IntArray) -> Asking:
        """Itself."""
        del train
        return self

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """The rows of the questions: their inputs differ between models."""
        return {"rows": np.asarray(rows, np.int64)}
