"""LIC and Leakage: how well is the group guessed from captions that do not name it?

LIC_M = mean over test captions of the attacker's confidence where it is right, 0 where it is wrong
(Hirota et al. 2022, eq. 2-4); Leakage = the share of right guesses (Wang et al. 2019). People's
side is the mean over the positions of their captions, each with attackers of its own; the score is
the captioner's side minus theirs. Groups are made equally large and a tenth of them is tested.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.corpus import Record
from tests.witness import lists
from tests.witness.attackers import Attacked, FloatArray, Halves, IntArray, even_halves
from tests.witness.words import align, cut, vocabulary

TEST_SHARE = 0.1


@dataclass(frozen=True)
class Scores:
    """What one side's attackers scored, (splits,) each."""

    lic: FloatArray
    leakage: FloatArray


def sides(images: Sequence[Record], n_splits: int, positions: int) -> dict[str, Scores]:
    """Both sides, over the same splits, of the images that have captions of both.

    Even an image without a label shows words that the captioner knows.
    """
    known = vocabulary(words_without_names(image.model) for image in images if image.model)
    used = [image for image in images if is_labelled(image) and image.model and image.human]
    groups = group_of(used)
    drawn = list(even_halves(groups, n_splits, TEST_SHARE))
    people = [
        attack([align(words_without_names(image.human[k]), known) for image in used], groups, drawn)
        for k in range(positions)
    ]
    return {
        "model": attack([words_without_names(image.model) for image in used], groups, drawn),
        "human": Scores(
            np.mean([result.lic for result in people], axis=0),
            np.mean([result.leakage for result in people], axis=0),
        ),
    }


def model_side(images: Sequence[Record], n_splits: int) -> Scores:
    """The captioner's side of all images that it describes."""
    used = [image for image in images if is_labelled(image) and image.model]
    groups = group_of(used)
    drawn = list(even_halves(groups, n_splits, TEST_SHARE))
    return attack([words_without_names(image.model) for image in used], groups, drawn)


def attack(captions: Sequence[Sequence[str]], groups: IntArray, drawn: Sequence[Halves]) -> Scores:
    """One fresh attacker a split."""
    attacked = Attacked(captions)
    lic, leakage = [], []
    for train, test in drawn:
        second = attacked.predict(groups, train, test)
        right = (second >= 0.5) == (groups[test] == 1)
        lic.append(np.where(right, np.maximum(second, 1 - second), 0.0).mean())
        leakage.append(right.mean())
    return Scores(np.array(lic), np.array(leakage))


def words_without_names(caption: str | None) -> list[str]:
    """The words of a caption, those that leak the group replaced."""
    assert caption is not None
    return lists.telling().mask(cut(caption), "<gender>")


def is_labelled(image: Record) -> bool:
    """Whether the image belongs to a group."""
    return "gender" in image.labels


def group_of(images: Sequence[Record]) -> IntArray:
    """(N,) number of each image's group."""
    names = list(lists.group_names())
    return np.array([names.index(image.labels["gender"]) for image in images])
