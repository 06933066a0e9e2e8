"""``fit --equalizer``: both losses by hand, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.attack.recipe import Adam
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.pictures.captioners.backbones import PixelInputs
from bias_pipeline.pictures.fitting.captioner import CaptionInputs
from bias_pipeline.pictures.fitting.learning import CaptionLearner, EqualizedLearner
from bias_pipeline.pictures.fitting.mitigation import Equalizer, EqualizerWeights, HiddenInputs
from bias_pipeline.run import compose
from tests.corpora import GENDER

# Numbers 0 to 3 are special (3 ends a caption); 4 and 5 are words of the first group, 6 is one of
# the second, 7 of none.
MEMBERS = np.zeros((8, 2), np.float32)
MEMBERS[[4, 5], 0] = MEMBERS[6, 1] = 1
WHOLE = [0.01, 0.01, 0.01, 0.1, 0.2, 0.3, 0.1, 0.3]  # group 0: 0.5, group 1: 0.1
HIDDEN_PEOPLE = [0.01, 0.01, 0.01, 0.1, 0.1, 0.1, 0.5, 0.2]  # 0.2 and 0.5


class Sees:
    """At every word the probabilities of its picture: whole or with people hidden."""

    def next_word_log_probs(self, tokens: torch.Tensor, shows: torch.Tensor) -> torch.Tensor:
        probs = torch.tensor([WHOLE, HIDDEN_PEOPLE])[shows]
        return probs.log()[:, None].expand(-1, tokens.shape[1], -1)


def loss(captions: list[list[int]], weights: EqualizerWeights, can_hide: list[bool]) -> float:
    """The loss of captions beyond that of their words."""
    moves: Any = (Sees(), Adam(0.1), None)
    longest = max(map(len, captions))
    lines = [[2, *words, 3] + [1] * (longest - len(words)) for words in captions]
    tokens, whole = torch.tensor(lines), torch.zeros(len(lines), dtype=torch.int64)
    hidden = {"can_hide": torch.tensor(can_hide), "hidden_shows": whole + 1}
    learner = EqualizedLearner(*moves, weights, MEMBERS)
    words_alone = CaptionLearner(*moves).loss(tokens, shows=whole)
    return float(learner.loss(tokens, shows=whole, **hidden) - words_alone)


CONFUSION = EqualizerWeights(confusion=10.0, confident=0.0)  # how far the groups differ, hidden
CONFIDENT = EqualizerWeights(confusion=0.0, confident=2.0)  # the other group over the captions'


@pytest.mark.parametrize(
    ("weights", "captions", "can_hide", "expected", "rel"),
    [
        (CONFUSION, [[7, 4], [7, 7, 7], [6, 6, 5], [7]], [True] * 4, 10 * 4 * 0.3 / 4, 1e-6),
        (CONFUSION, [[4], [6]], [False, True], 10 * 0.3 / 2, 1e-6),
        (CONFIDENT, [[7, 4], [6]], [True] * 2, 2 * (0.1 / 0.5 + 0.5 / 0.1) / 2, 1e-3),
        (EqualizerWeights(), [[7], [7, 7]], [True] * 2, 0, 1e-6),
    ],
    ids=["four words name a group", "people that cannot be hidden", "confident", "no group"],
)
def test_the_losses_by_hand(weights, captions, can_hide, expected, rel):
    assert loss(captions, weights, can_hide) == pytest.approx(expected, rel=rel, abs=1e-6)


def test_each_caption_comes_with_its_picture_twice():
    pixels = [PixelInputs(np.full((2, 4, 4, 3), shade, np.uint8)) for shade in (10, 20)]
    pixels[1].table[1] = 30
    inputs = CaptionInputs(
        [[4], [5], [6]],
        np.array([0, 1, 2]),
        PixelInputs(np.zeros((3, 4, 4, 3), np.uint8)),
        hidden=HiddenInputs(pixels[1], np.array([1, -1, 0])),
    )
    batch = inputs.batch(np.array([0, 1, 2]))
    assert batch["can_hide"].tolist() == [True, False, True]
    assert batch["hidden_pixels"][[0, 2], 0, 0, 0].tolist() == [30, 20]
    assert batch["pixels"].max() == 0


def scenes() -> Corpus:
    return compose.cell(["dataset.n_images=20"]).corpus()


@pytest.mark.parametrize("name", ["race", "emotion"])
def test_only_two_groups_that_words_name_by_themselves(name):
    attribute = compose.cell([f"attribute={name}"]).build("attribute")
    with pytest.raises(UsageError, match="needs an attribute of two groups"):
        Equalizer.of_corpus(EqualizerWeights(), attribute, scenes(), ImageMasking())


def test_people_must_be_hidden_and_captions_name_both_groups():
    with pytest.raises(UsageError, match="hides people"):
        Equalizer.of_corpus(EqualizerWeights(), GENDER, scenes(), ImageMasking(person="none"))
    equalizer = Equalizer.of_corpus(EqualizerWeights(), GENDER, scenes(), ImageMasking())
    with pytest.raises(DataError, match="name one group only"):
        equalizer.members({"man": 4, "dog": 5}, 6)
