"""``encoder=hf_lora``: a published model is fine-tuned to name the group, by few weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.captioners.backbones import pictures_of
from bias_pipeline.captioners.judge import VERSION as JUDGE_VERSION
from bias_pipeline.captioners.judge import questions_of
from bias_pipeline.captioners.prompt import Prompt
from bias_pipeline.captioners.prompted import digest_with, require_groups
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.declared import Count, Dropout, Positive, Range
from bias_pipeline.encoders.base import IntArray, Items, NetEncoder
from bias_pipeline.encoders.published import Line
from bias_pipeline.io.extras import LORA
from bias_pipeline.models.folders import require_preprocessing, require_vocabulary
from bias_pipeline.models.picture_text import KINDS, PictureText, Question
from bias_pipeline.models.places import MAIN
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from bias_pipeline.vision.pixels import VERSION as PIXELS_VERSION

if TYPE_CHECKING:
    from bias_pipeline.captioners.tuned_net import TunedNet

VERSION = 1  # raise it whenever any prediction changes


@dataclass(frozen=True)
class TunedJudge(NetEncoder):
    """An image-text model of transformers, fine-tuned by LoRA (Hu et al., ICLR 2022).

    All weights stay as they are; beside each linear layer a product of two matrices of rank
    ``rank`` is learnt, fresh for every attacker. The model is asked as by
    :class:`~bias_pipeline.captioners.judge.Judge`.

    Attributes:
        prompt: what leads it to name the group.
        model: a folder, or a name on the hub.
        revision: of a name on the hub.
        side: pictures are squeezed into a square of so many pixels before the model's own
            preprocessing.
        rank: of what is learnt beside a layer.
        alpha: how much it counts: its product is multiplied by ``alpha / rank``.
        dropout: on its inputs, in [0, 1).

    Example:
        >>> TunedJudge(Prompt("gender"), "Salesforce/blip-image-captioning-large").sees
        'pictures'
    """

    prompt: Prompt
    model: Line
    revision: Line = MAIN
    side: Annotated[int, Range(low=16, high=1024)] = 384
    rank: Count = 8
    alpha: Positive = 16.0
    dropout: Dropout = 0.05

    @property
    def found(self) -> Pretrained:
        """The model on disk.

        Raises:
            BiasPipelineError: if it is not there, takes no picture, or cannot be used.
        """
        return find_pretrained(self.model, KINDS, revision=self.revision)

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, wherever it lies, and all that decides what is learnt."""
        own = asdict(self)
        for key in ("model", "revision"):
            own.pop(key)
        versions = [VERSION, JUDGE_VERSION, PIXELS_VERSION]
        return {**own, "versions": versions, "files": dict(self.found.files)}

    @property
    def sees(self) -> str:
        """See the base."""
        return "pictures"

    def require(self) -> None:
        """See the base."""
        LORA.require()
        model = self.found
        require_vocabulary(model.folder, model.files)
        require_preprocessing(model.folder, model.files)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files."""
        model = find_pretrained(settings["model"], KINDS, revision=settings.get("revision", MAIN))
        return {"model": dict(model.files), "revision": MAIN}

    def digest(self, data: Labelled) -> str:
        """Of the captions and of the pictures, their edits included."""
        return digest_with(data, pictures_of(data).digest)

    def read(self, data: Labelled) -> Asking:
        """What is asked about each caption.

        Raises:
            NotApplicableError: if there are tasks to guess, or no pictures.
        """
        require_groups(data)
        return Asking(tuple(questions_of(self.prompt, data)))

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
