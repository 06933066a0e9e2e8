"""An annotator brought to the captioner's length, image by image, with lists.

The annotators of each image are drawn in turn. As few of them as together have 95 % of the
captioner's words are joined; the captioner's lengths go to the joined captions by rank, and the
words above them are cut. In each turn another annotator begins.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bias_pipeline.corpus.corpus import Record
from bias_pipeline.io.hashing import hash_ids, random_words


class Alike(NamedTuple):
    """The annotator on one image."""

    id: str
    says: str
    others: tuple[str, ...]  # captions of all annotators; it is compared with the first


def alike_annotators(images: Sequence[Record], seed: int = 0, turn: int = 0) -> list[Alike]:
    """The annotator on all images that have annotators enough; none without enough words.

    Args:
        images: with captions by model and annotators.
        seed: of the draws.
        turn: the drawn order begins so many annotators later.
    """
    order = {image.id: drawn_order(image, seed) for image in images}
    for n_joined in range(1, max(len(people) for people in order.values())):
        used = [image for image in images if len(image.human) > n_joined]
        if len(used) < len(images) / 2:
            break
        first = spoken_words(used, order, n_joined, seed)
        if sum(map(len, first.values())) < 0.95 * sum(len(i.model.split()) for i in used):
            continue
        turned = {image.id: shift(order[image.id], turn) for image in used}
        says = spoken_words(used, turned, n_joined, seed)
        return [
            Alike(i.id, " ".join(says[i.id]), tuple(shift(turned[i.id], n_joined))) for i in used
        ]
    return []


def spoken_words(
    images: Sequence[Record], order: Mapping[str, Sequence[str]], n_joined: int, seed: int
) -> dict[str, list[str]]:
    """Image to the words of its first annotators, cut to one of the captioner's lengths."""
    joined = {image.id: " ".join(order[image.id][:n_joined]).split() for image in images}
    lengths = sorted(len(image.model.split()) for image in images)
    ranked = sorted(joined, key=lambda i: (len(joined[i]), draw("annotator's length", i, seed)))
    return {name: joined[name][:length] for name, length in zip(ranked, lengths, strict=True)}


def shift(captions: Sequence[str], by: int) -> list[str]:
    """The captions from one on, and then those before it."""
    by %= len(captions)
    return [*captions[by:], *captions[:by]]


def drawn_order(image: Record, seed: int) -> list[str]:
    """The image's human captions in the order of their draws."""
    draws = [draw("annotator alike", image.id, seed, k) for k in range(len(image.human))]
    return [image.human[k] for k in np.argsort(draws)]


def draw(purpose: str, image: str, seed: int, part: int = 0) -> int:
    """A random number by purpose, seed, image and part."""
    (word,) = random_words(purpose, seed, hash_ids([image]), np.array([part], np.uint64)).tolist()
    return int(word)
