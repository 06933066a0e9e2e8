"""The pictures of ``scenes``: deterministic, masked exactly, and without a mark but the known."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pycocotools import mask as coco

from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.corpus.pictures import PERSON, Drawn, Pictures
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.data.photos import read_pixels
from bias_pipeline.data.picture_files import PictureFiles
from bias_pipeline.data.regions import outline_mask
from bias_pipeline.errors import UsageError
from bias_pipeline.scenes.dataset import write_drawn
from bias_pipeline.scenes.pixels import MARK, SceneDrawing, figure, icon, role_map
from bias_pipeline.scenes.slots import GROUPS
from bias_pipeline.scenes.world import Image, generate

IMAGES = generate(40, seed=3).images


def drawing(image: Image, leak: float = 0.0) -> SceneDrawing:
    return SceneDrawing(image, "gender", leak)


def with_gender(image: Image, group: str) -> Image:
    """The same scene with another group's mark."""
    return replace(image, labels={**image.labels, "gender": group})


def masked_pixels(drawing: SceneDrawing, side: int = 64) -> np.ndarray:
    return read_pixels(Pictures((drawing,)).with_edit(ImageMasking()), 0, side)


@pytest.mark.parametrize("side", [32, 64, 97, 256])
def test_the_same_scene_has_the_same_pixels(side):
    for image, again in zip(IMAGES, generate(40, seed=3).images, strict=True):
        assert (drawing(image).draw(side).pixels == drawing(again).draw(side).pixels).all()


@pytest.mark.parametrize("side", [32, 64, 128])
def test_no_pixel_outside_a_person_tells_the_group(side):
    for image in IMAGES:
        one, other = (drawing(with_gender(image, group)) for group in GROUPS["gender"])
        assert (masked_pixels(one, side) == masked_pixels(other, side)).all()


def test_the_group_is_to_be_seen_on_the_person():
    def pixels(group: str) -> np.ndarray:
        return np.array([drawing(with_gender(i, group)).draw(64).pixels for i in IMAGES])

    differ = (pixels("Male") != pixels("Female")).any(axis=(1, 2, 3))
    assert differ.mean() > 0.9  # things may stand before a person


def test_a_mark_that_spills_is_left_by_masking():
    one, other = (
        np.array([masked_pixels(drawing(with_gender(image, group), 0.2)) for image in IMAGES])
        for group in GROUPS["gender"]
    )
    assert (one != other).any(axis=(1, 2, 3)).mean() > 0.9


def test_figures_of_all_groups_have_one_outline():
    def outline(group: str) -> Drawn:
        return drawing(with_gender(IMAGES[0], group)).draw(64)

    assert outline("Male").regions == outline("Female").regions


@pytest.mark.parametrize("pose", [0.0, 30.0, 60.0])
@pytest.mark.parametrize("side", [6, 12, 40, 80])
def test_marks_are_wholly_inside_the_figure(pose, side):
    whole = figure(pose)
    bare = tuple(shape for shape in whole if shape.role < MARK)
    height, width = 2 * side, side
    assert ((role_map(whole, height, width) >= 0) == (role_map(bare, height, width) >= 0)).all()


def test_masks_are_of_things_in_the_scene_do_not_overlap_and_lie_in_their_boxes():
    for image in IMAGES:
        regions = drawing(image).draw(64).regions
        assert sum(outline_mask(region, 64, 64).astype(int) for region in regions).max() <= 1
    for region in drawing(IMAGES[0]).draw(64).regions:
        left, top, width, height = (int(value) for value in region.box)
        rows, columns = np.nonzero(outline_mask(region, 64, 64))
        assert (rows.min(), columns.min()) == (top, left)
        assert (rows.max() + 1, columns.max() + 1) == (top + height, left + width)
    for image in IMAGES:
        assert {region.category for region in drawing(image).draw(64).regions} <= image.objects


def test_every_category_has_a_pictogram_of_its_own():
    assert len({icon(name) for name in CATEGORIES if name != PERSON}) == 79


def test_each_scene_and_each_mark_has_a_digest_of_its_own():
    assert len({drawing(image).digest for image in IMAGES}) == len(IMAGES)
    one, other = (drawing(with_gender(IMAGES[0], group)) for group in GROUPS["gender"])
    assert one.digest != other.digest


@pytest.mark.parametrize("side", [31, 257])
def test_sizes_out_of_range_are_refused(side):
    with pytest.raises(UsageError, match=r"32 to 256 pixels, not [0-9]+; set encoder"):
        drawing(IMAGES[0]).draw(side)


def test_scenes_on_disk_are_the_scenes_that_are_drawn(tmp_path):
    """Through files in COCO's format, people masked by their run lengths."""
    world = generate(n_images=30)
    write_drawn(world, tmp_path, {}, side=64)
    photos = PictureFiles.read(tmp_path / "images", None, tmp_path / "annotations/instances.json")
    people = ImageMasking(person="segment")
    for image in world.images:
        photo, regions = photos.photo(str(image.id)), photos.regions_of(str(image.id))
        read = Pictures((photo,), (regions,)).with_edit(people)
        drawn = Pictures((SceneDrawing(image, "gender"),)).with_edit(people)
        assert np.array_equal(read_pixels(read, 0, 64), read_pixels(drawn, 0, 64))


def test_written_scenes_are_the_same_byte_for_byte(tmp_path):
    for name in ("one", "two"):
        write_drawn(generate(n_images=5), tmp_path / name, {}, side=32)
    one, two = (sorted((tmp_path / name).rglob("*.*")) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert len(one) == 8


def test_what_a_region_covers_is_its_area(tmp_path):
    write_drawn(generate(n_images=5), tmp_path, {}, side=64)
    content = json.loads((tmp_path / "annotations/instances.json").read_text())
    for item in content["annotations"]:
        assert item["area"] == coco.area(item["segmentation"])
