"""Scenes without marks: pixels show no group, and captioners name one only where they assume it."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.scenes.captioners import captions_without_marks
from bias_pipeline.scenes.dataset import without_marks
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.slots import GROUPS, BiasSettings
from bias_pipeline.scenes.world import World, generate

MEN = {"man", "men", "boy", "boys", "guy", "gentleman", "male", "he", "his"}
WOMEN = {"woman", "women", "girl", "girls", "lady", "ladies", "female", "she", "her"}


@pytest.fixture(scope="module")
def world() -> World:
    return generate(600, seed=1)


def share_naming(captions: dict[int, str], words: set[str]) -> float:
    """Share of captions with one of some words."""
    return float(np.mean([bool(words & set(text.lower().split())) for text in captions.values()]))


@pytest.mark.parametrize("attribute", GROUPS)
def test_pictures_do_not_depend_on_groups(attribute, world):
    image = world.images[0]
    drawn = {
        SceneDrawing(
            without_marks(replace(image, labels={**image.labels, attribute: group})), "gender"
        )
        .draw(64)
        .pixels.tobytes()
        for group in GROUPS[attribute]
    }
    assert len(drawn) == 1


def test_a_captioner_that_assumes_nothing_names_nobody(world):
    for dials in (BiasSettings(), BiasSettings(a_to_t=0.8)):
        assert share_naming(captions_without_marks(world, dials), MEN | WOMEN) == 0


def test_more_is_named_the_more_is_assumed(world):
    shares = [
        share_naming(captions_without_marks(world, BiasSettings(t_to_a=share)), MEN | WOMEN)
        for share in (0.2, 0.5, 1.0)
    ]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0.2 * shares[2], abs=0.05)


def test_captions_do_not_depend_on_the_groups_of_people(world):
    """Only through the scene: other labels of the same scenes give the same captions."""
    dials = BiasSettings(t_to_a=0.5, a_to_t=0.5)
    turned = {"Male": "Female", "Female": "Male", "Unsure": "Male"}
    others = tuple(
        replace(image, labels={**image.labels, "gender": turned[image.labels["gender"]]})
        for image in world.images
    )
    assert captions_without_marks(replace(world, images=others), dials) == captions_without_marks(
        world, dials
    )


def test_what_is_imagined_follows_the_assumed_group(world):
    """So people and things of a caption fit the stereotype more often."""
    plain = captions_without_marks(world, BiasSettings(t_to_a=1.0))
    imagined = captions_without_marks(world, BiasSettings(t_to_a=1.0, a_to_t=1.0))
    assert share_naming(plain, {"skirt", "dress"}) < share_naming(imagined, {"skirt", "dress"})
