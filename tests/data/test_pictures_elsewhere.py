"""``dataset.regions`` without ``dataset.images``: what is where in pictures that nobody has."""

import json
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.commands.data import inventory
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import MissingPicture, Pictures
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.data.photos import draw_picture
from bias_pipeline.errors import DataError, NotApplicableError
from tests.coco_folder import write_folder
from tests.data.test_coco import load, refusal_of

IDS = range(100, 160)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder with a file that knows a person in every picture but the last."""
    write_folder(tmp_path)
    write_regions(tmp_path, [{"id": i, "width": 40, "height": 20} for i in IDS])
    return tmp_path


def write_regions(root: Path, images: list[dict[str, Any]], *, left: int = 4) -> None:
    places = [
        {"image_id": i, "category_id": 1, "bbox": [left, 5, 8, 10]} for i in IDS if i != IDS[-1]
    ]
    content = {
        "images": images,
        "categories": [{"id": 1, "name": "person"}],
        "annotations": places,
    }
    (root / "boxes.json").write_text(json.dumps(content))


def load_boxes(root: Path, *words: str) -> Corpus:
    return load(root, f"dataset.regions={root / 'boxes.json'}", *words)


def pictures(root: Path) -> Pictures:
    loaded = load_boxes(root).pictures
    assert loaded is not None
    return loaded


def test_a_picture_elsewhere_has_its_regions(root):
    record = load_boxes(root)[3]
    assert (record.image, len(record.regions or ())) == (MissingPicture(), 1)


def test_other_places_are_another_corpus(root):
    before = load_boxes(root).digest
    write_regions(root, [{"id": i, "width": 40, "height": 20} for i in IDS], left=5)
    assert load_boxes(root, "limit=1000").digest != before


def test_who_looks_at_the_pixels_is_refused(root):
    with pytest.raises(NotApplicableError, match=r"only regions.*dataset\.images=DIR"):
        draw_picture(pictures(root), 0, 8)


def test_a_picture_without_people_cannot_be_masked(root):
    masked = ImageMasking("box")(load_boxes(root))
    assert masked.notes[-1].startswith("1 picture has no box of a person")


def test_an_image_that_the_file_does_not_know_is_refused(root):
    images = [{"id": i, "width": 40, "height": 20} for i in IDS[:-1]]
    write_regions(root, images)
    error = refusal_of(root, f"dataset.regions={root / 'boxes.json'}")
    assert "1 of 60 labelled images has no picture in dataset.regions, such as 159" in error


def test_boxes_in_pictures_of_unknown_size_are_refused(root):
    write_regions(root, [{"id": i} for i in IDS])
    with pytest.raises(DataError, match="has no size of the picture of image 100"):
        load_boxes(root)


def test_the_inventory_says_that_there_are_boxes_alone(root):
    facts = inventory(load_boxes(root))
    assert facts["images with boxes alone"] == "60"
    assert "images with a picture" not in facts
