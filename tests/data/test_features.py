"""Pictures whose background, or some of whose objects, are changed."""

from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.pictures import Drawn, Region
from bias_pipeline.data.image_masking import FeatureMasking, ImageMasking, MaskedPhotos
from bias_pipeline.errors import UsageError
from bias_pipeline.run import compose

SIZE = (40, 40)
PERSON = Region("person", (0, 0, 10, 20), SIZE)
DOG = Region("dog", (20, 20, 10, 10), SIZE)
IN_ARMS = Region("dog", (5, 5, 10, 10), SIZE)
BLUR = FeatureMasking(background=True, fill="blur")


def draw_picture_of(*regions: Region) -> Drawn:
    pixels = np.random.default_rng(0).integers(0, 255, (*SIZE, 3), np.uint8)
    return Drawn(pixels, regions)


def changed_pixels(masking: ImageMasking, *regions: Region) -> np.ndarray:
    before = draw_picture_of(*regions)
    return (masking.apply(before) != before.pixels).any(axis=2)


def test_people_and_things_stay_sharp():
    painted = changed_pixels(BLUR, PERSON, DOG)
    assert not painted[:20, :10].any()
    assert not painted[20:30, 20:30].any()
    assert painted[30:, 30:].mean() > 0.9


def test_a_greater_radius_blurs_more():
    before = draw_picture_of().pixels.astype(float)
    spread = [
        FeatureMasking(background=True, fill="blur", blur=blur).apply(draw_picture_of()).std()
        for blur in (0.02, 0.1)
    ]
    assert before.std() > spread[0] > spread[1]


def test_a_share_of_all_objects_is_hidden():
    regions = [Region("cup", (x, y, 3, 3), (999, 999)) for x in range(60) for y in range(50)]
    hidden = FeatureMasking(objects=True, share=0.1).choose_hidden([PERSON, *regions])
    assert len(hidden) / len(regions) == pytest.approx(0.1, abs=0.02)
    assert PERSON not in hidden


def test_background_and_objects_are_not_changed_together():
    with pytest.raises(UsageError, match=r"image_masking\.objects=true.*leave one out"):
        FeatureMasking(background=True, objects=True)


def test_the_same_objects_are_hidden_each_time_and_more_hide_them_too():
    regions = [Region("cup", (x, 0, 3, 3), (99, 99)) for x in range(90)]
    few, more = (
        FeatureMasking(objects=True, share=share).choose_hidden(regions) for share in (0.2, 0.6)
    )
    assert few == FeatureMasking(objects=True, share=0.2).choose_hidden(regions)
    assert set(few) < set(more)


def test_a_hidden_object_leaves_the_person_before_it():
    masking = FeatureMasking(objects=True, share=0.999999)
    painted = changed_pixels(masking, PERSON, IN_ARMS)
    assert not painted[:20, :10].any()
    assert painted[5:15, 10:15].all()


@pytest.mark.parametrize("name", ["background", "some_objects"])
def test_pictures_that_were_never_annotated_cannot_be_changed(name):
    masking = compose.cell([f"image_masking={name}"]).build("image_masking")
    photos = MaskedPhotos({"1": ()}, masking)
    assert photos.absent(Path("2.png")) == "annotated things"
    assert photos.absent(Path("1.png")) is None


def test_settings_are_named_where_they_differ_from_whole_photos():
    assert str(MaskedPhotos({}, BLUR)) == "fill=blur background=True"
