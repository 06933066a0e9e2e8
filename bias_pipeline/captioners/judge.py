"""``encoder=hf``: a published model is shown pictures and captions and asked for the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.captioners.fitted import KINDS as FITTED
from bias_pipeline.captioners.fitted import VERSION as FITTED_VERSION
from bias_pipeline.captioners.fitted import Fitted, FittedJudge
from bias_pipeline.captioners.published_judge import VERSION, PublishedJudge
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.declared import Count
from bias_pipeline.encoders.base import AnsweringEncoder, FloatArray
from bias_pipeline.errors import UsageError
from bias_pipeline.models.picture_text import KINDS as PUBLISHED
from bias_pipeline.models.picture_text import PictureText
from bias_pipeline.models.pretrained import Pretrained, device_of
from bias_pipeline.vision.pixels import VERSION as PIXELS_VERSION


@dataclass(frozen=True)
class Judge(PublishedJudge, AnsweringEncoder):
    """An image-text model as it is, of transformers or fitted here: nothing is trained (zero-shot).

    How likely each answer is after the picture and the prompt, by the model's own words. Where the
    model is the captioner under test, it judges itself. A captioner that was fitted here sees
    pictures of its own size, whatever ``side`` is.

    Attributes:
        dtype: the precision it computes in.
        batch_size: questions at once.
        device: where to compute; ``auto`` is the first GPU if there is one.
        cache: folder of the answers, None to keep none.

    Example:
        >>> from bias_pipeline.captioners.prompt import Prompt
        >>> Judge(Prompt("gender"), "Salesforce/blip-image-captioning-large").sees
        'pictures'
    """

    kinds: ClassVar[tuple[str, ...]] = (*PUBLISHED, *FITTED)

    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: Count = 16
    device: str = "auto"
    cache: str | None = None

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, wherever it lies, and how it is asked."""
        prompt = self.prompt
        told = {"template": prompt.template, "attribute": prompt.attribute}
        return {**self._settings(self.found), "prompt": {**told, "answers": dict(prompt.answers)}}

    def require(self) -> None:
        """Know that the model is there; a captioner fitted here says itself what it needs.

        Raises:
            UsageError: if it is to compute in a precision that it was not fitted in.
        """
        model = self.found
        if model.kind not in FITTED:
            super().require()
            return
        if self.dtype != "float32":
            raise UsageError(
                f"encoder.dtype={self.dtype}: {model.name} was fitted here and computes in float32"
            )
        Fitted.read(model)

    def told(self, groups: Sequence[str]) -> list[str]:
        """Which words of the prompt a captioner that was fitted here never learnt."""
        if self.found.kind not in FITTED:
            return []
        lacking = self.prompt.lacking(groups, set(Fitted.read(self.found).words))
        if not lacking:
            return []
        return [
            f"{self.found.name} does not know words of the prompt, and reads each as the same "
            f"unknown one: {', '.join(lacking)}"
        ]

    def _settings(self, model: Pretrained) -> dict[str, object]:
        own = [FITTED_VERSION] if model.kind in FITTED else []
        return {
            "job": "answers",
            "versions": [VERSION, PIXELS_VERSION, *own],
            "side": self.side,
            "dtype": self.dtype,
            "files": dict(model.files),
        }

    def likely(self, data: Labelled) -> FloatArray:
        """(N, K) logarithms of how likely each group's answer is, and what follows it.

        Raises:
            NotApplicableError: if there are tasks to guess, or no pictures.
            BiasPipelineError: if the model cannot be loaded, or a question cannot be asked.
        """
        from bias_pipeline.inference.answers import answers_to
        from bias_pipeline.inference.blocks import store_in
        from bias_pipeline.inference.runner import Model

        model, questions = self.found, list(self.questions(data))

        def load() -> Model:
            if model.kind in FITTED:
                return FittedJudge(model, device_of(self.device))
            return PictureText(model, device_of(self.device), self.side, self.dtype)

        settings = {**self._settings(model), "answers": data.n_classes}
        with store_in(self.cache, settings, model.name) as store:
            return answers_to(questions, store, load, self.batch_size).astype(np.float64)
