"""The emotion that a grounded captioner's captions are written for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from bias_pipeline.datasets.tables import SUFFIXES, check_file, open_rows
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.vision.photos import image_id

Emotion: TypeAlias = str | Mapping[str, str]
PREDICTED = "predicted"  # the emotion that the captioner's own head gives


def read_emotion(text: str) -> Emotion:
    """What ``--emotion`` names: an emotion, ``predicted``, or a table's image id to emotion."""
    path = Path(text)
    if path.suffix.lower() not in SUFFIXES:
        return text
    rows = open_rows(check_file(path), what="a table with image_id, emotion")
    rows.require("image_id", "emotion")
    emotions: dict[str, str] = {}
    for number, row in rows.items:
        image = image_id(rows.id(number, row, "image_id"))
        emotion = rows.text(number, row, "emotion").replace(" ", "_")
        if emotions.setdefault(image, emotion) != emotion:
            rows.refuse(number, f"image {image} has two emotions; keep one")
    return emotions


def check_emotion(model: str, known: Sequence[str], emotion: Emotion | None) -> None:
    """Refuse an emotion that a captioner cannot be grounded in.

    Args:
        model: its name, for messages.
        known: its emotions, empty if it is not grounded.
        emotion: see :func:`read_emotion`; None if none was given.

    Raises:
        UsageError: naming those that it knows.
    """
    if not known and emotion is not None:
        raise UsageError(f"{model}: its captions are grounded in no emotion; leave out --emotion")
    if known and emotion is None:
        raise UsageError(
            f"{model}: its captions are grounded in an emotion; give --emotion {PREDICTED}, a "
            f"table, or one of {', '.join(known)}"
        )
    allowed = known if isinstance(emotion, Mapping) else (*known, PREDICTED)
    for name in emotion.values() if isinstance(emotion, Mapping) else (emotion,):
        if name is not None and name not in allowed:
            raise UsageError(f"--emotion: {name!r} is unknown; {did_you_mean(name, allowed)}")


def emotion_of(image: str, emotion: Emotion) -> str:
    """The emotion of one image.

    Raises:
        DataError: if the table has none of it.
    """
    if isinstance(emotion, str):
        return emotion
    if image not in emotion:
        raise DataError(f"--emotion: the table has no emotion of image {image}; add it")
    return emotion[image]
