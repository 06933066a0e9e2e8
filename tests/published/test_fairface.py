"""FairFace's layout, made anew; and its real faces where they are."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError, ResourceError, UsageError
from tests import composed
from tests.corpora import DATA

HEADER = "file,age,gender,race,service_test"
LINES = (
    "train/1.jpg,50-59,Male,East Asian,True",
    "train/2.jpg,30-39,Female,Indian,False",
    "train/3.jpg,3-9,Female,Latino_Hispanic,False",
    "train/10.jpg,more than 70,Male,White,True",
)


def write(root: Path, *lines: str, part: str = "train", pictures: bool = True) -> Path:
    root.mkdir(exist_ok=True)
    (root / f"fairface_label_{part}.csv").write_text("\n".join((HEADER, *lines)) + "\n")
    for line in lines if pictures else ():
        path = root / line.partition(",")[0]
        path.parent.mkdir(exist_ok=True)
        shade = np.full((8, 8, 3), len(path.name), np.uint8)
        Image.fromarray(shade).save(path)
    return root


def load(root: Path, *words: str) -> Corpus:
    return composed.corpus("dataset=fairface", f"dataset.root={root}", *words)


def groups(corpus: Corpus, attribute: str) -> list[str]:
    grouping = corpus.groupings[attribute]
    return [grouping.names[code] for code in grouping.codes]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("gender", ["male", "male", "female", "female"]),
        ("age", ["old", "old", "old", "young"]),
        ("ethnicity", ["east_asian", "white", "indian", "latino"]),
    ],
)
def test_labels_are_read(tmp_path, attribute, expected):
    corpus = load(write(tmp_path, *LINES), f"attribute={attribute}")
    assert sorted(groups(corpus, attribute)) == sorted(expected)


def test_intersections_work_as_for_captions(tmp_path):
    root = write(tmp_path, *LINES, "train/11.jpg,10-19,Male,White,True")
    corpus = load(root, "attribute=[gender,age]", "attribute.min_images=1")
    (value,) = corpus.groupings.values()
    assert value.sizes == {"male-old": 2, "male-young": 1, "female-old": 1, "female-young": 1}


def test_each_face_has_its_picture_which_may_be_shown_with_its_authors_and_licence(tmp_path):
    corpus = load(write(tmp_path, *LINES))
    assert corpus.pictures is not None
    assert corpus.pictures.files == tuple(tmp_path / name for name in corpus.ids)
    assert "CC BY 4.0" in corpus.shown_under
    assert "Karkkainen and Joo" in corpus.shown_under


@pytest.mark.parametrize(("words", "n"), [([], 5), (["dataset.part=val"], 1)])
def test_both_parts_are_read_or_the_one_that_is_chosen(tmp_path, words, n):
    write(tmp_path, *LINES)
    write(tmp_path, "val/1.jpg,20-29,Male,Black,True", part="val")
    ids = load(tmp_path, *words).ids
    assert (len(ids), "val/1.jpg" in ids) == (n, True)


def test_70_and_above_may_be_written_as_predictions_write_it(tmp_path):
    corpus = load(write(tmp_path, "train/1.jpg,70+,Male,White,True"), "attribute=age")
    assert groups(corpus, "age") == ["old"]


DATES = ("3-Sep", "03-Sep", "Oct-19", "Oct-2019")
ELSEWHERE = ("../secret.jpg", "/etc/passwd", "train/../../x.jpg")
A_DATE = "line 6: age .* is a date that a spreadsheet made"


@pytest.mark.parametrize(
    ("line", "attribute", "message"),
    [
        *((f"train/11.jpg,{date},Male,White,True", "age", A_DATE) for date in DATES),
        ("train/11.jpg,20-29,Mal,White,True", "gender", "line 6: label 'Mal'.*did you mean"),
        *((f"{path},20-29,Male,White,True", "age", "not within the folder") for path in ELSEWHERE),
    ],
)
def test_a_line_that_cannot_be_used_is_refused(tmp_path, line, attribute, message):
    root = write(tmp_path / "faces", *LINES)
    with (root / "fairface_label_train.csv").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=message):
        load(root, f"attribute={attribute}")


def test_an_absent_picture_is_refused_and_noted_leniently(tmp_path):
    root = write(tmp_path, *LINES)
    (root / "train" / "2.jpg").unlink()
    with pytest.raises(ResourceError, match=r"1 of 4 pictures .* such as train/2\.jpg"):
        load(root)
    notes = load(root, "dataset.strict=false").notes
    assert "1 of 4 pictures is absent: not retrieved" in notes


def test_absent_files_and_skin_tone_by_ethnic_origin_are_refused(tmp_path):
    with pytest.raises(ResourceError, match=r"fairface_label_train\.csv"):
        load(tmp_path)
    root = write(tmp_path, *LINES, pictures=False)
    with pytest.raises(ResourceError, match="4 of 4 pictures"):
        load(root, "dataset.strict=false")
    with pytest.raises(UsageError, match="no labels of attribute 'race'"):
        load(root, "attribute=race")


def test_the_real_faces_are_read_whole():
    root = DATA / "faces"
    if not root.is_dir():
        pytest.skip(f"no faces at {root}; set BIAS_PIPELINE_DATA to have this test run")
    corpus = load(root, "attribute=ethnicity")
    assert corpus.groupings["ethnicity"].sizes == {
        "white": 105,
        "black": 82,
        "latino": 84,
        "east_asian": 73,
        "southeast_asian": 72,
        "indian": 78,
        "middle_eastern": 46,
    }
