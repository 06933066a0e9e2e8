"""A folder of one ``.txt`` a picture is a file of captions; one of its files is not."""

import json
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.captioner_files import CaptionerFolder
from bias_pipeline.data.coco_files import human_captions, model_captions
from bias_pipeline.data.photos import find_photos
from bias_pipeline.data.tables import check_file
from bias_pipeline.data.text_folders import is_text_folder
from bias_pipeline.errors import DataError, ResourceError, UsageError
from tests import composed

TEXTS = {
    "1000": "a man",
    "COCO_val2014_000000000042": "a dog\nby a lake",
    "kite.jpg": "\ufeffa kite",
}
IDS = ["1000", "42", "kite"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "txt"
    place.mkdir()
    for name, text in TEXTS.items():
        (place / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    return place


def load(folder: Path, *overrides: str) -> Corpus:
    lines = ["image_id,gender", "1000.jpg,male", "000042.jpg,female", "kite.jpg,male"]
    (folder.parent / "labels.csv").write_text("\n".join(lines))
    settings = {"dataset": "coco", "dataset.attributes": f"{folder.parent / 'labels.csv'}"}
    return composed.corpus(*(f"{k}={v}" for k, v in settings.items()), *overrides)


def test_names_are_ids_and_texts_captions(folder):
    assert model_captions(folder).captions == {
        "1000": "a man",
        "COCO_val2014_000000000042": "a dog\nby a lake",
        "kite.jpg": "a kite",
    }


def test_a_folder_among_captioners_has_its_name(folder):
    other = folder.parent / "others"
    other.mkdir()
    (other / "notes.md").write_text("no captions")
    corpus = load(folder, f"dataset.captioners={folder.parent}", "captioner=txt")
    assert (corpus.captioner, len(corpus)) == ("txt", 3)
    assert "txt" in CaptionerFolder("coco", folder.parent).names()
    assert "others" not in CaptionerFolder("coco", folder.parent).names()


def test_a_captioners_folder_is_scored(folder):
    corpus = load(folder, f"captioner={folder}")
    assert sorted(record.id for record in corpus) == IDS
    assert corpus.captioner == "txt"
    assert "txt: captions from 3 files .txt" in corpus.notes


def test_people_write_a_caption_a_line(folder):
    assert human_captions(folder)[0]["COCO_val2014_000000000042"] == ("a dog", "by a lake")
    (folder.parent / "mine.json").write_text(json.dumps(dict.fromkeys(IDS, "a man")))
    captioner = f"captioner={folder.parent / 'mine.json'}"
    corpus = load(folder, captioner, f"dataset.captions={folder}")
    assert {record.id: len(record.human) for record in corpus} == {"1000": 1, "42": 2, "kite": 1}


def test_pictures_may_lie_beside_the_texts(folder):
    (folder / "1000.JPG").write_bytes(b"")
    (folder / ".DS_Store").write_bytes(b"")
    (folder / "more").mkdir()
    assert is_text_folder(folder)


def test_an_empty_text_is_a_blank_caption(folder):
    (folder / "1000.txt").write_text("")
    assert model_captions(folder).captions["1000"] == ""


@pytest.mark.parametrize("other", ["captions.json", "labels.csv", "notes.md"])
def test_a_folder_of_other_files_is_refused(folder, other):
    (folder / other).write_text("[]")
    with pytest.raises(ResourceError, match=r"is a folder, which holds .*; name one file"):
        check_file(folder)


def test_one_text_is_refused_with_the_folder_to_name(folder, monkeypatch):
    message = r"is one caption of one picture; name its folder, (\S+), with 3 such files"
    with pytest.raises(DataError, match=message) as caught:
        load(folder, f"captioner={folder}/1000.txt")
    advised = str(caught.value).partition("its folder, ")[2].partition(",")[0]
    assert len(load(folder, f"captioner={advised}")) == 3
    monkeypatch.chdir(folder)
    with pytest.raises(DataError, match=message):
        load(folder, "captioner=1000.txt")


def test_a_text_elsewhere_is_of_an_unknown_ending(tmp_path):
    (tmp_path / "a.txt").write_text("a man")
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises((DataError, UsageError), match="ending"):
        load(tmp_path / "x", f"captioner={tmp_path}/a.txt")


def test_a_jfif_is_a_jpeg(tmp_path):
    (tmp_path / "000042.jfif").write_bytes(b"")
    assert list(find_photos(tmp_path)) == ["42"]
