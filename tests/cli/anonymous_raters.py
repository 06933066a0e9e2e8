"""Raters who answer in a test, through the store that ``rate`` writes to; and spoilt folders."""

from collections.abc import Callable
from pathlib import Path

from bias_pipeline.data.photos import find_photos
from bias_pipeline.io.files import read_csv
from bias_pipeline.people.anonymous import ANSWERS, QUESTION
from bias_pipeline.people.web.study import AnswerStore, RatingQuestion, Study

HEAD = "image_id,attribute,value,rater\n"


def answer_filter(folder: Path, value: Callable[[str], str], raters: int = 3) -> None:
    """Raters say of each picture of ``anonymous build`` what ``value`` says of its id."""
    question = RatingQuestion(QUESTION, "question", ANSWERS)
    study = Study(question, find_photos(folder / "images"), {})
    store = AnswerStore(folder / "filter", study)
    for rater in range(raters):
        for image in study.images:
            store.put(f"rater{rater}", image, value(image), 1.0)
    store.close()


def images(table: Path) -> list[str]:
    return [line["image_id"] for line in read_csv(table.read_text())]


def spoil(folder: Path, name: str, content: str | None) -> None:
    """Replace a file of the folder, or remove the first of a pattern; FIRST is the first id."""
    if content is None:
        next(iter(sorted(folder.glob(name)))).unlink()
        return
    first = images(folder / "pictures.csv")[0]
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content.replace("FIRST", first))
