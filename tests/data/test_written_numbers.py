"""Image ids as spreadsheets write numbers: the picture that is meant, or a refusal."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError
from tests import composed

IDS = [397_133, 1_097, 37_777, 252_219, 87_038, 174_482, 403_385, 6_818, 480_985, 458_054, 12]
WHO = ("man", "woman")


def load(root: Path, **forms: Callable[[int], str]) -> Corpus:
    """A corpus whose ids are written in some form in the file of each name."""

    def table(name: str, rows: Sequence[tuple[int, str]], column: str) -> str:
        form = forms.get(name, str)
        path = root / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("image_id", column), *((form(i), t) for i, t in rows)])
        return str(path)

    texts = [(i, f"a {WHO[k % 2]} with thing {i}") for k, i in enumerate(IDS)]
    labels = [(i, ("Male", "Female")[k % 2]) for k, i in enumerate(IDS)]
    files = {
        "dataset.attributes": table("labels", labels, "gender"),
        "dataset.captions": table("people", [(i, f"{text}, seen") for i, text in texts], "caption"),
        "captioner": table("mine", texts, "caption"),
    }
    return composed.corpus("dataset=coco", *(f"{key}={path}" for key, path in files.items()))


def check(corpus: Corpus) -> None:
    assert sorted(map(int, corpus.ids)) == sorted(IDS)
    for row, image in enumerate(corpus.ids):
        assert corpus.model.text(row).endswith(f"thing {image}")
        assert f"thing {image}," in corpus.human.text(row)


def in_powers(image: int) -> str:
    digits = str(image)
    return f"{digits[0]}.{digits[1:]}E+{len(digits) - 1:02d}"


FORMS: dict[str, Callable[[int], str]] = {
    "commas": lambda i: f"{i:,}",
    "points": lambda i: f"{i:,}".replace(",", "."),
    "blanks": lambda i: f"{i:,}".replace(",", " "),
    "narrow blanks": lambda i: f"{i:,}".replace(",", "\u202f"),
    "apostrophes": lambda i: f"{i:,}".replace(",", "'"),
    "powers of ten": in_powers,
    "text": lambda i: f"'{i}",
    "padded text": lambda i: f"'{i:012d}",
    "decimals": lambda i: f"{i}.0",
    "two decimals": lambda i: f"{i}.00",
}


@pytest.mark.parametrize("name", ["mine", "people", "labels"])
@pytest.mark.parametrize("form", FORMS)
def test_a_number_is_the_picture_that_other_files_mean(tmp_path, form, name):
    corpus = load(tmp_path, **{name: FORMS[form]})
    check(corpus)
    (note,) = (note for note in corpus.notes if note.startswith("image ids are read as numbers"))
    assert " is " in note


@pytest.mark.parametrize("form", FORMS)
def test_a_number_is_read_where_only_one_file_has_it_plain(tmp_path, form):
    check(load(tmp_path, mine=FORMS[form], people=FORMS[form]))


def test_separators_that_all_files_have_are_part_of_names(tmp_path):
    points = FORMS["points"]
    corpus = load(tmp_path, mine=points, people=points, labels=points)
    assert set(corpus.ids) == {points(i) for i in IDS}


def test_a_number_without_its_last_digits_is_refused_with_its_line(tmp_path):
    with pytest.raises(DataError, match=r"mine.csv, line 2: .*3.97E\+05.* without its last digits"):
        load(tmp_path, mine=lambda i: f"{i:.2E}")


def test_two_ids_that_would_be_one_picture_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"ids 1,097 and 1097 are in one file"):
        load(tmp_path, mine=lambda i: "1,097" if i == 12 else str(i))


def test_a_negative_number_is_no_other_picture(tmp_path):
    with pytest.raises(DataError, match="no caption is of a labelled image"):
        load(tmp_path, mine=lambda i: str(-i))
