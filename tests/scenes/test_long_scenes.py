"""Captioners of scenes that write long captions, and several of each picture."""

import numpy as np
import pytest

from bias_pipeline.errors import UsageError
from bias_pipeline.run import compose
from bias_pipeline.scenes.captioners import CAPTIONERS, world_captions
from bias_pipeline.scenes.slots import BiasSettings
from bias_pipeline.scenes.truth import truth
from bias_pipeline.scenes.world import World, generate
from bias_pipeline.text.sentences import sentences_of

LONG = CAPTIONERS["verbose"]
WORDS = {"Male": {"man", "guy", "male", "boy"}, "Female": {"woman", "lady", "female", "girl"}}


@pytest.fixture(scope="module")
def world() -> World:
    return generate(n_images=600)


def test_verbose_captions_have_ten_sentences_the_first_as_faithful_writes(world):
    captions = world_captions(world, LONG).values()
    assert {len(sentences_of(text)) for text in captions} == {10}
    assert 95 < np.mean([len(text.split()) for text in captions]) < 120
    short = world_captions(world, CAPTIONERS["faithful"])
    for image, text in world_captions(world, LONG).items():
        assert sentences_of(text)[0].rstrip(" .") == short[image].rstrip(" .")


def test_a_planted_bias_is_the_same_in_every_sentence(world):
    """The person's group is mistaken as often as planted, in all sentences of a caption or none."""
    captions = world_captions(world, BiasSettings(t_to_a=0.4, sentences=5))
    wrong, total = 0, 0
    for image in world.images:
        group = image.labels["gender"]
        if group not in WORDS:
            continue
        text = set(captions[image.id].lower().replace(".", " ").split())
        named = {name for name, words in WORDS.items() if words & text}
        if len(named) == 1:
            total += 1
            wrong += named != {group}
    known = truth(BiasSettings(t_to_a=0.4)).contradicted
    assert min(known) - 0.04 < wrong / total < max(known) + 0.04


def test_samples_are_drawn_anew_by_the_same_captioner(world):
    one, two = (world_captions(world, CAPTIONERS["stereotyper"], k) for k in (0, 1))
    assert sum(one[image] == two[image] for image in one) < 0.2 * len(one)
    lengths = [np.mean([len(text.split()) for text in each.values()]) for each in (one, two)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.05)


@pytest.mark.parametrize("sentences", [0, 51, 1.5])
def test_a_number_of_sentences_that_is_none_is_refused(sentences):
    with pytest.raises(UsageError, match="dial sentences is"):
        BiasSettings(sentences=sentences)


def test_all_captioners_are_those_of_short_captions():
    cell = compose.cell(["dataset=scenes"])
    names = cell.build("dataset").everyone(cell.build("attribute"))
    assert set(CAPTIONERS) - set(names) == {"verbose"}
