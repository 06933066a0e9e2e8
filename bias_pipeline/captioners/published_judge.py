"""What judges of ``transformers`` share: a model on disk, and what it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from bias_pipeline.captioners.backbones import pictures_of
from bias_pipeline.captioners.prompt import CAPTION, Prompt
from bias_pipeline.captioners.prompted import digest_with, require_groups
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.declared import Range
from bias_pipeline.encoders.base import Encoder
from bias_pipeline.encoders.published import Line
from bias_pipeline.models.folders import require_preprocessing, require_vocabulary
from bias_pipeline.models.picture_text import KINDS, Question
from bias_pipeline.models.places import MAIN
from bias_pipeline.models.pretrained import Pretrained, find_pretrained

VERSION = 1  # raise it whenever any question or answer changes


@dataclass(frozen=True)
class PublishedJudge(Encoder):
    """An image-text model that is shown pictures and captions and asked for the group.

    Attributes:
        prompt: what leads it to name the group.
        model: a folder, or a name on the hub.
        revision: of a name on the hub.
        side: pictures are squeezed into a square of so many pixels before the model's own
            preprocessing.
    """

    kinds: ClassVar[tuple[str, ...]] = KINDS  # of model that will do

    prompt: Prompt
    model: Line
    revision: Line = MAIN
    side: Annotated[int, Range(low=16, high=1024)] = 384

    @property
    def found(self) -> Pretrained:
        """The model on disk.

        Raises:
            BiasPipelineError: if it is not there, takes no picture, or cannot be used.
        """
        return find_pretrained(self.model, self.kinds, revision=self.revision)

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
        revision = settings.get("revision", MAIN)
        model = find_pretrained(settings["model"], cls.kinds, revision=revision)
        return {"model": dict(model.files), "revision": MAIN}

    def digest(self, data: Labelled) -> str:
        """Of the captions and of the pictures, their edits included."""
        return digest_with(data, pictures_of(data).digest)

    def questions(self, data: Labelled) -> Iterator[Question]:
        """What is asked about each of N captions and its picture.

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
            follows = tuple(" ".join([*own, after]).strip() for own in answers)
            yield Question(pictures, row, before, follows)
