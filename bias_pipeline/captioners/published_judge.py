"""The base of judges of ``transformers``: a model on disk and its questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from bias_pipeline.captioners.backbones import pictures_of
from bias_pipeline.captioners.prompt import CAPTION, Prompt
from bias_pipeline.captioners.prompted import digest_with, require_groups
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Range
from bias_pipeline.encoders.base import Encoder
from bias_pipeline.encoders.language_models import Line
from bias_pipeline.models.folders import require_preprocessing, require_vocabulary
from bias_pipeline.models.model_location import MAIN
from bias_pipeline.models.picture_text import KINDS, Question
from bias_pipeline.models.pretrained import Pretrained, find_pretrained

VERSION = 1  # raise it whenever any question or answer changes


@dataclass(frozen=True)
class PublishedJudge(Encoder):
    """An image-text model that predicts the group from pictures and captions.

    Attributes:
        prompt: the prompt for the group.
        model: a folder, or a name on the hub.
        revision: of a name on the hub.
        side: pictures become squares of so many pixels before the model's own preprocessing.
    """

    kinds: ClassVar[tuple[str, ...]] = KINDS  # allowed kinds of model

    prompt: Prompt
    model: Line
    revision: Line = MAIN
    side: Annotated[int, Range(low=16, high=1024)] = 384

    @property
    def pretrained(self) -> Pretrained:
        """The model on disk.

        Raises:
            BiasPipelineError: if it is absent, takes no picture, or cannot be used.
        """
        return find_pretrained(self.model, self.kinds, revision=self.revision)

    @property
    def sees(self) -> str:
        """See the base."""
        return "pictures"

    def require(self) -> None:
        """See the base."""
        model = self.pretrained
        require_vocabulary(model.folder, model.files)
        require_preprocessing(model.folder, model.files)

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
        """The question about each of N captions and its picture.

        Raises:
            NotApplicableError: if there are tasks to guess, or no pictures.
        """
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
