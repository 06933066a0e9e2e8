"""``encoder=hf|hf_lora``: a published model predicts the group from pictures and captions.

``hf_lora`` is fine-tuned first, with few weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack.encoder import AnsweringEncoder, Encoder, Items, NetEncoder
from bias_pipeline.attack.language_models import Line
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.photos import VERSION as PIXELS_VERSION
from bias_pipeline.declared import Count, Dropout, Range
from bias_pipeline.errors import UsageError
from bias_pipeline.io.machine import LORA
from bias_pipeline.models.model_location import MAIN, require_preprocessing, require_vocabulary
from bias_pipeline.models.picture_text import KINDS, PictureText, Question
from bias_pipeline.models.picture_text import KINDS as PUBLISHED
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.pictures.captioners.backbones import pictures_of
from bias_pipeline.pictures.captioners.fitted import KINDS as FITTED
from bias_pipeline.pictures.captioners.fitted import VERSION as FITTED_VERSION
from bias_pipeline.pictures.captioners.fitted import Fitted, FittedJudge
from bias_pipeline.pictures.captioners.prompt import CAPTION, Prompt, digest_with, require_groups

if TYPE_CHECKING:
    from bias_pipeline.pictures.captioners.nets import TunedNet

VERSION = 1  # raise it whenever any question or answer changes


@dataclass(frozen=True)
class PublishedJudge(Encoder):
    kinds: ClassVar[tuple[str, ...]] = KINDS  # allowed kinds of model

    prompt: Prompt  # the prompt for the group
    model: Line  # a folder, or a name on the hub
    revision: Line = MAIN  # the revision of a name on the hub
    # Pixels a side of the squares that pictures become before the model's own preprocessing
    side: Annotated[int, Range(low=16, high=1024)] = 384

    def find_model(self) -> Pretrained:
        return find_pretrained(self.model, self.kinds, revision=self.revision)

    @property
    def sees(self) -> str:
        return "pictures"

    def require(self) -> None:
        model = self.find_model()
        require_vocabulary(model.folder, model.files)
        require_preprocessing(model.folder, model.files)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        revision = settings.get("revision", MAIN)
        model = find_pretrained(settings["model"], cls.kinds, revision=revision)
        return {"model": dict(model.files), "revision": MAIN}

    def digest(self, data: LabelledCaptions) -> str:
        """The digest of the captions and of the edited pictures."""
        return digest_with(data, pictures_of(data).digest)

    def questions(self, data: LabelledCaptions) -> Iterator[Question]:
        """The question about each of N captions and its picture."""
        require_groups(data)
        pictures, answers = pictures_of(data), self.prompt.answers_of(data.classes)
        for row in range(len(data.captions)):
            caption = data.captions.text(row)
            before, after = (
                " ".join(caption if word == CAPTION else word for word in words).strip()
                for words in (self.prompt.words_before, self.prompt.words_after)
            )
            follows = tuple(" ".join([*answer, after]).strip() for answer in answers)
            yield Question(pictures, row, before, follows)


@dataclass(frozen=True)
class Judge(PublishedJudge, AnsweringEncoder):
    """An image-text model, published or fitted by this program, that is not trained (zero-shot).

    The model gives the probability of each answer after the picture and the prompt. If the same
    model wrote the captions, it judges itself. A captioner fitted by this program uses its own
    picture size instead of ``side``.

    Example:
        >>> from bias_pipeline.pictures.captioners.prompt import Prompt
        >>> Judge(Prompt("gender"), "Salesforce/blip-image-captioning-large").sees
        'pictures'
    """

    kinds: ClassVar[tuple[str, ...]] = (*PUBLISHED, *FITTED)

    dtype: Literal["float32", "bfloat16", "float16"] = "float32"  # the precision of computing
    batch_size: Count = 16  # questions per batch
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one
    cache: str | None = None  # folder that caches the answers; None for no cache

    @property
    def spec(self) -> Mapping[str, object]:
        prompt = self.prompt
        settings = {"template": prompt.template, "attribute": prompt.attribute}
        return {
            **self._settings(self.find_model()),
            "prompt": {**settings, "answers": dict(prompt.answers)},
        }

    def require(self) -> None:
        """Check that the model is present and fits these settings."""
        model = self.find_model()
        if model.kind not in FITTED:
            super().require()
            return
        if self.dtype != "float32":
            raise UsageError(
                f"encoder.dtype={self.dtype}: {model.name} was fitted here and computes in float32"
            )
        Fitted.read(model)

    def notes(self, groups: Sequence[str]) -> list[str]:
        if self.find_model().kind not in FITTED:
            return []
        lacking = self.prompt.lacking(groups, set(Fitted.read(self.find_model()).words))
        if not lacking:
            return []
        return [
            f"{self.find_model().name} lacks these words of the prompt and reads each as its token "
            f"for unknown words: {', '.join(lacking)}"
        ]

    def _settings(self, model: Pretrained) -> dict[str, object]:
        fitted_version = [FITTED_VERSION] if model.kind in FITTED else []
        return {
            "job": "answers",
            "versions": [VERSION, PIXELS_VERSION, *fitted_version],
            "side": self.side,
            "dtype": self.dtype,
            "files": dict(model.files),
        }

    def answer_log_probs(self, data: LabelledCaptions) -> Float64Array:
        """(N, K) the log-probability of each group's answer and of the words after it."""
        from bias_pipeline.models.blocks import store_in
        from bias_pipeline.models.picture_vectors import answers_to
        from bias_pipeline.models.runner import Model

        model, questions = self.find_model(), list(self.questions(data))

        def load() -> Model:
            if model.kind in FITTED:
                return FittedJudge(model, device_of(self.device))
            return PictureText(model, device_of(self.device), self.side, self.dtype)

        settings = {**self._settings(model), "answers": data.n_classes}
        with store_in(self.cache, settings, model.name) as store:
            return answers_to(questions, store, load, self.batch_size).astype(np.float64)


TUNED_VERSION = 1  # raise it whenever any prediction of a tuned judge changes


@dataclass(frozen=True)
class TunedJudge(PublishedJudge, NetEncoder):
    """An image-text model of transformers, fine-tuned by LoRA (Hu et al., ICLR 2022).

    The model's weights are frozen. Every attacker adds to each linear layer a freshly learnt
    product of two matrices of rank ``rank``.

    Example:
        >>> from bias_pipeline.pictures.captioners.prompt import Prompt
        >>> TunedJudge(Prompt("gender"), "Salesforce/blip-image-captioning-large").rank
        8
    """

    rank: Count = 8  # of the learnt matrices
    alpha: Count = 16  # scale: the product is multiplied by `alpha / rank`
    dropout: Dropout = 0.05  # on the inputs of the product, in [0, 1)

    @property
    def spec(self) -> Mapping[str, object]:
        settings = asdict(self)
        for key in ("model", "revision"):
            settings.pop(key)
        versions = [TUNED_VERSION, VERSION, PIXELS_VERSION]
        return {**settings, "versions": versions, "files": dict(self.find_model().files)}

    def require(self) -> None:
        LORA.require()
        super().require()

    def read(self, data: LabelledCaptions) -> QuestionItems:
        return QuestionItems(tuple(self.questions(data)))

    def build(self, inputs: QuestionItems) -> TunedNet:
        import torch

        from bias_pipeline.pictures.captioners.nets import TunedNet

        model = PictureText(self.find_model(), torch.device("cpu"), self.side)
        return TunedNet(model, inputs.questions, self.rank, self.alpha, self.dropout)


@dataclass(frozen=True, eq=False)
class QuestionItems(Items):
    """N questions, which are the same for every training part."""

    questions: Sequence[Question]  # about each caption and its picture

    @cached_property
    def lengths(self) -> IntArray:
        return np.array([len(question.before.split()) for question in self.questions], np.int64)

    def fit(self, train: IntArray) -> QuestionItems:
        """The same questions, since nothing is learnt from the training part."""
        del train
        return self

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """The rows of the questions, from which each model makes its own inputs."""
        return {"rows": np.asarray(rows, np.int64)}
