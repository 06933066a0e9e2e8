"""``encoder=hf``: a published model is shown pictures and captions and asked for the group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from bias_pipeline.captioners.backbones import pictures_of
from bias_pipeline.captioners.prompt import CAPTION, Prompt
from bias_pipeline.captioners.prompted import digest_with, require_groups
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.declared import Count, Range
from bias_pipeline.encoders.base import AnsweringEncoder, FloatArray
from bias_pipeline.encoders.published import Line
from bias_pipeline.models.folders import require_preprocessing, require_vocabulary
from bias_pipeline.models.picture_text import KINDS, PictureText, Question
from bias_pipeline.models.places import MAIN
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.vision.pixels import VERSION as PIXELS_VERSION

VERSION = 1  # raise it whenever any answer changes


@dataclass(frozen=True)
class Judge(AnsweringEncoder):
    """An image-text model of transformers as it is: nothing is trained (zero-shot).

    How likely each answer is after the picture and the prompt, by the model's own words. Where the
    model is the captioner under test, it judges itself.

    Attributes:
        prompt: what leads it to name the group.
        model: a folder, or a name on the hub.
        revision: of a name on the hub.
        side: pictures are squeezed into a square of so many pixels before the model's own
            preprocessing.
        dtype: the precision it computes in.
        batch_size: questions at once.
        device: where to compute; ``auto`` is the first GPU if there is one.
        cache: folder of the answers, None to keep none.

    Example:
        >>> Judge(Prompt("gender"), "Salesforce/blip-image-captioning-large").sees
        'pictures'
    """

    prompt: Prompt
    model: Line
    revision: Line = MAIN
    side: Annotated[int, Range(low=16, high=1024)] = 384
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: Count = 16
    device: str = "auto"
    cache: str | None = None

    @property
    def found(self) -> Pretrained:
        """The model on disk.

        Raises:
            BiasPipelineError: if it is not there, takes no picture, or cannot be used.
        """
        return find_pretrained(self.model, KINDS, revision=self.revision)

    @property
    def spec(self) -> Mapping[str, object]:
        """The model by its digests, wherever it lies, and how it is asked."""
        prompt = self.prompt
        told = {"template": prompt.template, "attribute": prompt.attribute}
        return {**self._settings(self.found), "prompt": {**told, "answers": dict(prompt.answers)}}

    def _settings(self, model: Pretrained) -> dict[str, object]:
        return {
            "job": "answers",
            "versions": [VERSION, PIXELS_VERSION],
            "side": self.side,
            "dtype": self.dtype,
            "files": dict(model.files),
        }

    @property
    def sees(self) -> str:
        """See the base."""
        return "pictures"

    def require(self) -> None:
        """See the base."""
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

    def likely(self, data: Labelled) -> FloatArray:
        """(N, K) logarithms of how likely each group's answer is, and what follows it.

        Raises:
            NotApplicableError: if there are tasks to guess, or no pictures.
            BiasPipelineError: if the model cannot be loaded, or a question cannot be asked.
        """
        from bias_pipeline.inference.answers import answers_to
        from bias_pipeline.inference.blocks import store_in

        require_groups(data)
        model, questions = self.found, list(questions_of(self.prompt, data))

        def load() -> PictureText:
            return PictureText(model, device_of(self.device), self.side, self.dtype)

        settings = {**self._settings(model), "answers": data.n_classes}
        with store_in(self.cache, settings, model.name) as store:
            return answers_to(questions, store, load, self.batch_size).astype(np.float64)


def questions_of(prompt: Prompt, data: Labelled) -> Iterator[Question]:
    """What is asked about each of N captions and its picture.

    Raises:
        NotApplicableError: if there are no pictures.
    """
    pictures, answers = pictures_of(data), prompt.answers_of(data.classes)
    for row in range(len(data.captions)):
        caption = data.captions.text(row)
        before, after = (
            " ".join(caption if word == CAPTION else word for word in words).strip()
            for words in (prompt.before, prompt.after)
        )
        follows = tuple(" ".join([*own, after]).strip() for own in answers)
        yield Question(pictures, row, before, follows)
