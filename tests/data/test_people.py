"""The person of a picture by itself."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.pictures import Pictures, Region
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.data.regions import Crop, crop_cache_key, crop_person
from bias_pipeline.errors import DataError
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.world import generate

RED, GREEN = (200, 0, 0), (0, 200, 0)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Green, with a red person of 10 x 20 pixels."""
    pixels = np.full((40, 60, 3), GREEN, np.uint8)
    pixels[5:25, 30:40] = RED
    path = tmp_path / "7.png"
    Image.fromarray(pixels).save(path)
    return path


def person(size: tuple[int, int] = (40, 60), scale: float = 1) -> Region:
    left, top, width, height = (scale * length for length in (30, 5, 10, 20))
    return Region("person", (left, top, width, height), size)


def cropped_pixels(path: Path, *regions: Region, crop: Crop = "person") -> np.ndarray:
    return np.asarray(crop_person(Pictures((path,), (regions,)), 0, crop))


def test_a_person_stands_in_the_middle_of_a_grey_square(picture):
    crop = cropped_pixels(picture, person())
    assert crop.shape == (20, 20, 3)
    assert (crop[:, 5:15] == RED).all()
    assert (crop[:, :5] == crop[:, 15:]).all()
    assert not (crop[:, :5] == GREEN).all(axis=-1).any()


SMALL = Region("person", (0, 30, 4, 4), (40, 60))
BESIDE = Region("person", (70, 0, 50, 30), (40, 60))


@pytest.mark.parametrize(
    "regions", [[person((80, 120), 2)], [SMALL, person()]], ids=["larger picture", "largest"]
)
def test_the_largest_person_is_shown_whatever_the_size_of_the_annotated_picture(picture, regions):
    assert (cropped_pixels(picture, *regions) == cropped_pixels(picture, person())).all()


@pytest.mark.parametrize(
    ("regions", "crop"),
    [([], "person"), ([person()], "none"), ([BESIDE], "person")],
    ids=["nobody", "uncropped", "beside the picture"],
)
def test_without_a_person_to_cut_out_all_is_shown(picture, regions, crop):
    assert cropped_pixels(picture, *regions, crop=crop).shape == (40, 60, 3)


def test_a_broken_file_is_named(tmp_path):
    path = tmp_path / "broken.jpg"
    path.write_bytes(b"not a picture")
    with pytest.raises(DataError, match=r"broken\.jpg"):
        crop_person(Pictures((path,)), 0, "person")


def test_a_scene_knows_where_its_people_are():
    pictures = Pictures((SceneDrawing(generate(1).images[0], "gender"),))
    cut, whole = (crop_person(pictures, 0, crop) for crop in ("person", "none"))
    assert cut.size[0] < whole.size[0]


def test_another_box_is_another_key(picture):
    one, other = (Pictures((picture,), ((person(scale=s),),)) for s in (1, 0.5))
    assert crop_cache_key(one, 0, "person") != crop_cache_key(other, 0, "person")


def test_a_box_plays_no_part_where_nothing_is_cropped(picture):
    one, other = (Pictures((picture,), ((person(scale=s),),)) for s in (1, 0.5))
    assert crop_cache_key(one, 0, "none") == crop_cache_key(other, 0, "none")


@pytest.mark.parametrize("crop", ["person", "none"])
def test_what_a_masking_hides_is_another_key(picture, crop):
    keys = {
        crop_cache_key(Pictures((picture,), ((region,),), (ImageMasking("box"),)), 0, crop)
        for region in (person(), SMALL)
    }
    assert len(keys) == 2
