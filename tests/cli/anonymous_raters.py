"""Raters who answer in a test, through the store that ``rate`` writes to."""

from collections.abc import Callable
from pathlib import Path

from bias_pipeline.analysis.anonymous import ANSWERS, QUESTION
from bias_pipeline.vision.photos import find_photos
from bias_pipeline.web.study import AnswerStore, RatingQuestion, Study


def answer_filter(folder: Path, value: Callable[[str], str], raters: int = 3) -> None:
    """Raters say of each picture of ``anonymous build`` what ``value`` says of its id."""
    question = RatingQuestion(QUESTION, "question", ANSWERS)
    study = Study(question, find_photos(folder / "images"), {})
    store = AnswerStore(folder / "filter", study)
    for rater in range(raters):
        for image in study.images:
            store.put(f"rater{rater}", image, value(image), 1.0)
    store.close()
