"""What raters are asked: a question, its answers, and the pictures or captions it is about."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from io import BytesIO
from pathlib import Path

from bias_pipeline.corpus.image_ids import id_key
from bias_pipeline.datasets.rater_answers import CANNOT_TELL
from bias_pipeline.vision.masked_photos import PhotoReader
from bias_pipeline.vision.photos import read_photo

CONSENT = files("bias_pipeline.web").joinpath("consent.txt").read_text(encoding="utf-8")
NO_ATTRIBUTE = "question"  # what is asked if no groups are
_LONGEST_SIDE, _QUALITY = 1600, 90


@dataclass(frozen=True)
class RatingQuestion:
    """A question with a few answers."""

    text: str  # what raters read
    attribute: str  # what the answers are labels of
    # In the order of the page; "cannot tell" is added, unless "unsure" is one of them
    answers: tuple[str, ...]
    ordinal: bool = False  # whether the answers are ordered

    @property
    def values(self) -> dict[str, str]:
        """Stored value to what its button says.

        Example:
            >>> RatingQuestion("Emotion?", "emotion", ("awe", "something_else")).values
            {'awe': 'awe', 'something_else': 'something else', 'Unsure': 'cannot tell'}
        """
        words = {answer: answer.replace("_", " ") for answer in self.answers}
        return words if "unsure" in words else {**words, CANNOT_TELL: "cannot tell"}


@dataclass(frozen=True)
class Study:
    """A question about pictures, captions or both."""

    question: RatingQuestion  # that is asked about each
    photos: Mapping[str, Path]  # image id to file; empty if only captions are shown
    captions: Mapping[str, str]  # image id to caption; empty if only pictures are shown
    read: PhotoReader = read_photo  # how photos are read
    masking: str = ""  # how they are masked, in words; empty if they are whole
    consent: str = CONSENT  # the text that raters agree to
    gold: Mapping[str, str] = field(default_factory=dict)  # image id to a known answer
    limit: int | None = None  # only so many items, the first by their ids; None for all

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The ids of all items, in their own order."""
        shown = [set(items) for items in (self.photos, self.captions) if items]
        return tuple(sorted(set.intersection(*shown), key=id_key)[: self.limit])

    @cached_property
    def settings(self) -> dict[str, object]:
        """What must stay the same while answers are collected."""
        shown = [(image, self.captions.get(image)) for image in self.images]
        return {
            "question": self.question.text,
            "attribute": self.question.attribute,
            "answers": list(self.question.answers),
            "ordinal": self.question.ordinal,
            "masking": self.masking,
            "pictures": bool(self.photos),
            "items": hashlib.sha256(repr(shown).encode()).hexdigest(),
            "consent": self.consent_digest,
        }

    @property
    def consent_digest(self) -> str:
        """SHA-256 (hex) of the text that raters agree to."""
        return hashlib.sha256(self.consent.encode()).hexdigest()

    def order(self, rater: str) -> tuple[str, ...]:
        """The items in a rater's order, always the same for a name."""
        return tuple(sorted(self.images, key=lambda image: _mixed(rater, image)))

    def picture(self, image: str) -> bytes:
        """An image as a JPEG of at most 1600 pixels a side, without metadata.

        Raises:
            UnreadableError: with the reason.
        """
        photo = self.read(self.photos[image])
        photo.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
        content = BytesIO()
        photo.save(content, "JPEG", quality=_QUALITY)
        return content.getvalue()


def _mixed(rater: str, image: str) -> bytes:
    return hashlib.sha256(f"{rater}\0{image}".encode()).digest()
