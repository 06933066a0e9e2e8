"""``encoder=hf``: an image-text model as it is predicts the group from pictures and captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.attack.encoder import AnsweringEncoder
from bias_pipeline.attack.language_models import Line
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.photos import VERSION as PIXELS_VERSION
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import UsageError
from bias_pipeline.models.model_location import MAIN, require_preprocessing, require_vocabulary
from bias_pipeline.models.picture_text import KINDS as PUBLISHED
from bias_pipeline.models.picture_text import PictureText, Question
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.pictures.captioners.backbones import pictures_of
from bias_pipeline.pictures.captioners.fitted import KINDS as FITTED
from bias_pipeline.pictures.captioners.fitted import VERSION as FITTED_VERSION
from bias_pipeline.pictures.captioners.fitted import Fitted, FittedJudge
from bias_pipeline.pictures.captioners.prompt import CAPTION, Prompt
from bias_pipeline.pictures.captioners.prompted import digest_with, require_groups

VERSION = 1  # raise it whenever any question or answer changes


@dataclass(frozen=True)
class Judge(AnsweringEncoder):
    """An image-text model of transformers or fitted here, without training (zero-shot).

    It gives the probability of each answer after picture and prompt. If the model is the captioner
    under test, it judges itself. A captioner fitted here uses its own picture size, not ``side``.

    Example:
        >>> from bias_pipeline.pictures.captioners.prompt import Prompt
        >>> Judge(Prompt("gender"), "Salesforce/blip-image-captioning-large").sees
        'pictures'
    """

    kinds: ClassVar[tuple[str, ...]] = (*PUBLISHED, *FITTED)  # allowed kinds of model

    prompt: Prompt  # the prompt for the group
    model: Line  # a folder, or a name on the hub
    revision: Line = MAIN  # of a name on the hub
    # Pictures become squares of so many pixels before the model's own preprocessing
    side: Annotated[int, Range(low=16, high=1024)] = 384
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"  # the precision it computes in
    batch_size: Count = 16  # questions per batch
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one
    cache: str | None = None  # folder that caches the answers, None for no cache

    @property
    def pretrained(self) -> Pretrained:
        """The model on disk."""
        return find_pretrained(self.model, self.kinds, revision=self.revision)

    @property
    def sees(self) -> str:
        return "pictures"

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, not its path, and the prompt."""
        prompt = self.prompt
        settings = {"template": prompt.template, "attribute": prompt.attribute}
        return {
            **self._settings(self.pretrained),
            "prompt": {**settings, "answers": dict(prompt.answers)},
        }

    def require(self) -> None:
        """Check that the model is present; a captioner fitted here is checked by its own files."""
        model = self.pretrained
        if model.kind not in FITTED:
            require_vocabulary(model.folder, model.files)
            require_preprocessing(model.folder, model.files)
            return
        if self.dtype != "float32":
            raise UsageError(
                f"encoder.dtype={self.dtype}: {model.name} was fitted here and computes in float32"
            )
        Fitted.read(model)

    def notes(self, groups: Sequence[str]) -> list[str]:
        """A note on words of the prompt that a captioner fitted here does not know."""
        if self.pretrained.kind not in FITTED:
            return []
        lacking = self.prompt.lacking(groups, set(Fitted.read(self.pretrained).words))
        if not lacking:
            return []
        return [
            f"{self.pretrained.name} lacks these words of the prompt and reads each as its token "
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

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The model by the digests of its files."""
        revision = settings.get("revision", MAIN)
        model = find_pretrained(settings["model"], cls.kinds, revision=revision)
        return {"model": dict(model.files), "revision": MAIN}

    def digest(self, data: LabelledCaptions) -> str:
        """Of the captions and of the pictures with their edits."""
        return digest_with(data, pictures_of(data).digest)

    def questions(self, data: LabelledCaptions) -> Iterator[Question]:
        require_groups(data)
        pictures, answers = pictures_of(data), self.prompt.answers_of(data.classes)
        for row in range(len(data.captions)):
            caption = data.captions.text(row)
            before, after = (
                " ".join(caption if word == CAPTION else word for word in words).strip()
                for words in (self.prompt.before, self.prompt.after)
            )
            follows = tuple(" ".join([*answer, after]).strip() for answer in answers)
            yield Question(pictures, row, before, follows)

    def answer_log_probs(self, data: LabelledCaptions) -> Float64Array:
        """(N, K) log-probabilities of each group's answer with the words after it."""
        from bias_pipeline.models.blocks import store_in
        from bias_pipeline.models.picture_vectors import answers_to
        from bias_pipeline.models.runner import Model

        model, questions = self.pretrained, list(self.questions(data))

        def load() -> Model:
            if model.kind in FITTED:
                return FittedJudge(model, device_of(self.device))
            return PictureText(model, device_of(self.device), self.side, self.dtype)

        settings = {**self._settings(model), "answers": data.n_classes}
        with store_in(self.cache, settings, model.name) as store:
            return answers_to(questions, store, load, self.batch_size).astype(np.float64)
