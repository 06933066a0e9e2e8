"""CLIP-clip: the numbers that tell most of the group are found, and cut from both sides."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy import ndimage

from bias_pipeline.retrieval.debias.base import Examples
from bias_pipeline.retrieval.debias.methods import ClipClip, information
from bias_pipeline.retrieval.dual_encoders import DualEncoder

NAMES = ("male", "female")


def planted_vectors(n: int = 4000, seed: int = 0) -> Examples:
    """Numbers 1 and 4 of six tell the group, one by its mean and one by its spread."""
    random = np.random.default_rng(seed)
    groups = random.integers(0, 2, n)
    vectors = random.standard_normal((n, 6))
    vectors[:, 1] += 2.0 * groups
    vectors[:, 4] *= 1.0 + 4.0 * groups
    return Examples(vectors, groups, np.full(n, -1), NAMES, seed)


@dataclass(frozen=True)
class Given:
    vectors: np.ndarray
    spec: dict[str, object] = field(default_factory=dict)

    def embed(self, items: object, /) -> np.ndarray:
        del items
        return self.vectors.astype(np.float32)


def edited_sides(how: ClipClip) -> tuple[np.ndarray, np.ndarray]:
    """Pictures and texts under a debiasing."""
    random = np.random.default_rng(5)
    images, texts = random.standard_normal((50, 6)), random.standard_normal((7, 6))
    dual = how.wrap(DualEncoder(Given(images), Given(texts)), {"image": planted_vectors()})
    return dual.images.embed(None), dual.texts.embed(None)


def test_numbers_that_tell_the_group_are_cut():
    assert sorted(ClipClip(k=2).fit(planted_vectors()).neurons.tolist()) == [1, 4]


def test_a_number_that_tells_all_has_the_entropy_of_the_groups():
    examples = planted_vectors()
    groups = examples.groups.astype(float)
    telling = replace(examples, vectors=groups[:, None])
    share = groups.mean()
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert information(telling, 64, 0.0)[0] == pytest.approx(entropy)


def entropy_of(shares: np.ndarray) -> float:
    return float(-np.sum(shares * np.log(shares, where=shares > 0, out=np.zeros(shares.shape))))


def test_it_is_the_information_of_the_published_protocol():
    """A 64 x 64 histogram of the number and the group's code, smoothed in both directions."""
    examples = replace(planted_vectors(1000), groups=np.arange(1000) % 2)
    result = information(examples, 64, 1.0)
    for number in range(6):
        joint = np.histogram2d(examples.vectors[:, number], examples.groups, (64, 64))[0]
        joint = ndimage.gaussian_filter(joint, 1.0, mode="constant")
        joint /= joint.sum()
        sides = entropy_of(joint.sum(axis=0)) + entropy_of(joint.sum(axis=1))
        assert result[number] == pytest.approx(sides - entropy_of(joint), abs=1e-9)


def test_without_the_group_there_is_hardly_any_information():
    examples = planted_vectors(20_000)
    assert information(examples, 64, 1.0)[[0, 2, 3, 5]].max() < 0.01


@pytest.mark.parametrize("side", ["image", "text", "both"])
def test_whichever_side_is_cut_similarities_are_the_same(side):
    images, texts = edited_sides(ClipClip(k=2, side=side))
    both = edited_sides(ClipClip(k=2))
    assert images @ texts.T == pytest.approx(both[0] @ both[1].T, abs=1e-5)


def test_texts_lose_what_pictures_lose():
    images, texts = edited_sides(ClipClip(k=2))
    assert not images[:, [1, 4]].any()
    assert not texts[:, [1, 4]].any()
