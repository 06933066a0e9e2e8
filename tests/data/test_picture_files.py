"""What is where in pictures: COCO instances and detectors' results, and what cannot be used."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.pictures import PERSON
from bias_pipeline.data.picture_files import PictureFiles, regions_by_id
from bias_pipeline.data.regions import outline_mask
from bias_pipeline.errors import DataError
from tests.corpora import DATA
from tests.photo_folder import write_photos

BOX = [1, 2, 3, 4]
SQUARE = [1, 1, 3, 1, 3, 3, 1, 3]


def instances(path: Path, *annotations: dict[str, Any], size: object = 10) -> Path:
    images = [{"id": 1, "height": size, "width": size}, {"id": 2, "height": size, "width": size}]
    categories = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}]
    annotated = [{"image_id": 1, "category_id": 1, **one} for one in annotations]
    content = {"images": images, "categories": categories, "annotations": annotated}
    path.write_text(json.dumps(content))
    return path


def results(path: Path, *entries: dict[str, Any]) -> Path:
    content = [{"image_id": 1, "category_id": 1, "bbox": BOX, **one} for one in entries]
    path.write_text(json.dumps(content))
    return path


def test_boxes_and_outlines_are_read(tmp_path):
    path = instances(tmp_path / "i.json", {"bbox": BOX, "segmentation": [SQUARE]})
    (region,) = regions_by_id(path)["1"]
    assert (region.category, region.box, region.size) == (PERSON, (1, 2, 3, 4), (10, 10))
    assert region.has_outline


def test_an_image_without_annotations_holds_nothing(tmp_path):
    assert regions_by_id(instances(tmp_path / "i.json", {"bbox": BOX}))["2"] == ()


def test_annotations_that_say_no_place_say_nothing(tmp_path):
    assert "1" not in regions_by_id(instances(tmp_path / "i.json", {}))


def test_a_box_of_nothing_says_no_place(tmp_path):
    nothing = {"bbox": [3, 3, 0, 5]}
    assert "1" not in regions_by_id(instances(tmp_path / "i.json", nothing))


def test_an_outline_with_a_box_of_nothing_has_its_own(tmp_path):
    outlined = {"bbox": [0, 0, 0, 0], "segmentation": [[1, 2, 5, 2, 5, 4]]}
    (region,) = regions_by_id(instances(tmp_path / "i.json", outlined))["1"]
    assert region.box == (1, 2, 4, 2)


def test_a_box_follows_from_the_outline(tmp_path):
    (region,) = regions_by_id(instances(tmp_path / "i.json", {"segmentation": [SQUARE]}))["1"]
    assert region.box == (1, 1, 2, 2)


def test_crowds_are_masks_of_run_lengths(tmp_path):
    mask = {"size": [10, 10], "counts": [0, 10, 90]}
    path = instances(tmp_path / "i.json", {"segmentation": mask, "iscrowd": 1})
    (region,) = regions_by_id(path)["1"]
    assert outline_mask(region, 10, 10)[:, 0].all()
    assert outline_mask(region, 10, 10).sum() == 10


def test_results_name_categories_by_coco_s_numbers(tmp_path):
    path = results(tmp_path / "r.json", {"category_id": 18, "score": 0.25})
    (region,) = regions_by_id(path)["1"]
    assert (region.category, region.score, region.size) == ("dog", 0.25, (0, 0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"category_id": 99}, "category_id 99 is not among the categories"),
        ({"bbox": [1, 2, 3]}, "bbox must be four numbers"),
        ({"bbox": [1, 2, -3, 4]}, "bbox must be four numbers"),
        ({"bbox": [1, 2, "3", 4]}, "bbox must be a list of numbers"),
        ({"bbox": [1, 2, 3, 10**400]}, "bbox must be a list of numbers"),
        ({"segmentation": [[1, 2, 3, 4]]}, "needs three points or more"),
        ({"segmentation": [SQUARE[:7]]}, "needs three points or more"),
        ({"segmentation": "x"}, "neither polygons nor"),
        ({"segmentation": {"size": [10, 10], "counts": [5]}}, "do not fill 10 x 10 pixels"),
        ({"segmentation": {"size": [10, 10], "counts": 7}}, "neither text nor whole numbers"),
        ({"segmentation": {"size": [5, 9], "counts": [45]}}, "mask is of 9 x 5 pixels, its image"),
        ({"bbox": BOX, "score": 2}, "score 2 is not from 0 to 1"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, wrong, message):
    with pytest.raises(DataError, match=rf"i\.json, annotations entry 0: .*{message}"):
        regions_by_id(instances(tmp_path / "i.json", wrong))


def test_without_a_folder_of_pictures_nothing_is_read():
    assert PictureFiles.read(None, None, Path("absent.json")) == PictureFiles()


def test_instances_serve_where_no_other_file_is_named(tmp_path):
    photos = write_photos(tmp_path / "photos", 2)
    content = PictureFiles.read(photos, None, instances(tmp_path / "i.json", {"bbox": BOX}))
    assert content.photo("1") == photos / "1.png"
    assert len(content.regions_of("1") or ()) == 1


def photos() -> Path:
    folder = DATA / "photos"
    if not folder.is_dir():
        pytest.skip(f"the real photos are not in {DATA}")
    return folder


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "n_outlined"),
    [("instances", 1257), ("instances_predicted", 2149), ("person_boxes", 0)],
)
def test_real_annotations_are_read(name, n_outlined):
    result = regions_by_id(photos() / f"{name}.json")
    assert (
        sum(region.has_outline for regions in result.values() for region in regions) == n_outlined
    )


@pytest.mark.real
def test_real_outlines_lie_in_their_boxes():
    result = regions_by_id(photos() / "instances.json")
    for region in [item for regions in result.values() for item in regions][:200]:
        rows, columns = np.nonzero(outline_mask(region, *region.size))
        left, top, width, height = region.box
        assert left - 1 <= columns.min() <= columns.max() <= left + width + 1
        assert top - 1 <= rows.min() <= rows.max() <= top + height + 1
