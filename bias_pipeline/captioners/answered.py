"""Captions from answers of a server or of a batch, with notes on those that are not whole."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from bias_pipeline.corpus.image_ids import few
from bias_pipeline.datasets.chat_answers import Answer
from bias_pipeline.io.terminal import redacted
from bias_pipeline.vision.photos import UnreadableError

WRONG_SHAPE = "wrong shape"
# Why a model, not a service that failed, gave no caption: the photo is not asked about again.
_OF_MODEL = ("refused", "empty", "length", "content_filter", WRONG_SHAPE)


class AnsweredCaptions(list[str]):
    """The captions of a photo."""

    # On each caption: why it is empty or cut, empty if it is whole; None if all are
    notes: list[str] | None = None


class AnswerCounts:
    """Answers that are no whole captions, with their images; safe in threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._images: dict[str, list[str]] = {}

    def captions(self, image: str, answers: Sequence[Answer]) -> AnsweredCaptions:
        """The captions of a photo, empty where the model gave none.

        Args:
            image: its id.
            answers: one for each of its captions.

        Raises:
            UnreadableError: if the service failed, so that asking again may help.
        """
        failed = [a.absent for a in answers if a.absent and a.absent not in _OF_MODEL]
        if failed:
            raise UnreadableError(failed[0], lasting=False)
        captions = AnsweredCaptions(_plain(" ".join(answer.captions)) for answer in answers)
        notes = [answer.cut or answer.absent for answer in answers]
        if any(notes):
            captions.notes = notes
        with self._lock:
            for answer in answers:
                kind = f"empty ({answer.absent})" if answer.absent else f"cut ({answer.cut})"
                if answer.absent or answer.cut:
                    self._images.setdefault(kind, []).append(image)
        return captions

    def sentences(self) -> list[str]:
        """How many captions are empty or cut, and why.

        Example:
            >>> counts = AnswerCounts()
            >>> _ = counts.captions("42", [Answer("42", ["a dog and"], cut="length")])
            >>> counts.sentences()
            ['1 captions are cut (length), such as of image 42']
        """
        return [
            f"{len(images)} captions are {kind}, such as of image {few(images)}"
            for kind, images in sorted(self._images.items())
        ]


def _plain(text: str) -> str:
    r"""A text without keys, halves of characters and blanks at its ends.

    Example:
        >>> _plain(" a dog \ud83d ")
        'a dog ?'
    """
    return redacted(text.encode("utf-8", "replace").decode().strip())
