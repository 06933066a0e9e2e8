"""Raters who answer in a test, through the store that ``rate`` writes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bias_pipeline.analysis.anonymous_filter import ANSWERS, QUESTION
from bias_pipeline.vision.photos import find_photos
from bias_pipeline.web.answers import AnswerStore
from bias_pipeline.web.study import RatingQuestion, Study


def answer_filter(folder: Path, value: Callable[[str], str], raters: int = 3) -> None:
    """Raters say of each picture of ``anonymous build`` what ``value`` says of its id."""
    question = RatingQuestion(QUESTION, "question", ANSWERS)
    rate(folder / "filter", Study(question, find_photos(folder / "images"), {}), value, raters)


def answer_captions(
    out: Path, attribute: str, groups: tuple[str, ...], captions: Mapping[str, str],
    value: Callable[[str], str], raters: int = 3,
) -> None:  # fmt: skip
    """Raters say of each caption what ``value`` says of the caption."""
    study = Study(RatingQuestion("Who?", attribute, groups), {}, captions)
    rate(out, study, lambda image: value(captions[image]), raters)


def rate(out: Path, study: Study, value: Callable[[str], str], raters: int) -> None:
    """Answer all items of a study."""
    store = AnswerStore(out, study)
    for rater in range(raters):
        for image in study.images:
            store.put(f"rater{rater}", image, value(image), 1.0)
    store.close()
