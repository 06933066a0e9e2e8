"""Things and where they are, without pixels."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.recipe import Adam
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.pictures import Drawn, MissingPicture, Pictures, Region
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.data.image_masking import Blank, ImageMasking
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.pictures.captioners.backbones import (
    BoxBackbone,
    BoxInputs,
    NamedObject,
    placed_objects,
)
from bias_pipeline.pictures.captioners.prompt import Answers, Prompt
from bias_pipeline.pictures.captioners.sat import Sat
from tests.pictures.captioners.test_sat import FLAGS, data, split

SIZE = (20, 40)
PERSON = Region("person", (10, 5, 20, 10), SIZE)
DOG = Region("dog", (-10, 15, 20, 10), SIZE, score=0.5)


@dataclass(frozen=True)
class OneThing:
    """A picture of a dog on one side or the other."""

    is_left: bool

    @property
    def digest(self) -> str:
        return str(self.is_left)

    def draw(self, side: int) -> Drawn:
        place = (0 if self.is_left else side / 2, 0, side / 2, side / 2)
        region = Region("dog", place, (side, side))
        return Drawn(np.zeros((side, side, 3), np.uint8), (region,))


def photo(folder: Path, *regions: Region) -> Pictures:
    Image.new("RGB", (40, 20)).save(folder / "1.png")
    return Pictures((folder / "1.png",), (regions,))


def test_a_place_is_in_shares_of_the_picture_wherever_its_file_is(tmp_path):
    things = placed_objects(photo(tmp_path, PERSON, DOG), 0)
    assert things[0] == NamedObject("person", (0.25, 0.25, 0.5, 0.5, 1.0))
    assert things[1] == NamedObject("dog", (0.0, 0.75, 0.25, 0.25, 0.5))
    unsized = photo(tmp_path, replace(PERSON, size=(0, 0)))
    assert placed_objects(unsized, 0) == placed_objects(photo(tmp_path, PERSON), 0)
    here = photo(tmp_path, PERSON, DOG)
    assert placed_objects(replace(here, files=(MissingPicture(),)), 0) == placed_objects(here, 0)
    assert placed_objects(photo(tmp_path, replace(DOG, box=(40, 0, 9, 9))), 0) == ()


@pytest.mark.parametrize(
    ("edit", "left"), [(ImageMasking("box"), ["dog"]), (Blank(), [])], ids=["masked", "blank"]
)
def test_what_is_hidden_has_no_box(tmp_path, edit, left):
    pictures = photo(tmp_path, PERSON, DOG).with_edit(edit)
    assert [item.name for item in placed_objects(pictures, 0)] == left


def test_scenes_know_where_things_are():
    scenes = data(20)
    assert scenes.pictures is not None
    assert scenes.objects is not None
    for row, objects in enumerate(scenes.objects):
        names = {item.name for item in placed_objects(scenes.pictures, row)}
        assert names <= {*objects, "person"}


def test_short_lists_are_filled_up():
    one = NamedObject("dog", (0.1, 0.2, 0.3, 0.4, 1.0))
    batch = BoxInputs.of_lines([(), (one, one)]).batch(np.arange(2))
    assert batch["objects"].tolist() == [[0, 0], [1, 1]]
    assert batch["places"][1, 1] == pytest.approx(one.place)
    assert not batch["places"][0].any()


def test_without_annotations_it_says_which_file_has_them(tmp_path):
    labelled = LabelledCaptions("model", Captions.from_texts(["a"]), np.zeros(1, np.int64), 2)
    shown = replace(labelled, pictures=replace(photo(tmp_path, PERSON), regions=None))
    with pytest.raises(NotApplicableError, match=r"dataset\.regions=FILE"):
        BoxBackbone(4).read(shown)


def on_sides(n: int = 160) -> LabelledCaptions:
    """Nothing but the side on which a dog is tells the groups apart."""
    labels = np.arange(n) % 2
    pictures = Pictures(tuple(OneThing(bool(label)) for label in labels))
    captions = Captions.from_texts(["a dog"] * n)
    return LabelledCaptions("model", captions, labels, 2, ("male", "female"), pictures)


def accuracy(labelled: LabelledCaptions, backbone: str) -> float:
    sat, flags = Sat(Prompt("gender"), backbone=backbone), {**FLAGS, "max_epochs": 10}
    probe = NeuralProbe(sat, Answers(), Adam(0.01), 32, flags, processes=1)
    predictions = probe.fit_predict(labelled, [split(len(labelled.labels))])
    return float((predictions.probs[0].argmax(axis=1) == predictions.truth[0]).mean())


def test_where_a_thing_is_can_be_learnt_and_what_there_is_tells_nothing():
    assert accuracy(on_sides(), "boxes") > 0.95
    changed = replace(on_sides(), objects=[frozenset({"dog"})] * 160)
    assert accuracy(changed, "annotations") < 0.6


def test_it_is_an_encoder_of_pictures():
    assert Sat(Prompt("gender"), backbone="boxes").sees == "pictures"
