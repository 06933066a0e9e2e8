"""An annotator brought to the captioner's length, image by image, with lists.

The annotators of each image are drawn in turn. As few of them as together have 95 % of the
captioner's words are joined; the captioner's lengths go to the joined captions by rank, and the
words above them are cut. The annotators that are left come first, for the comparison.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bias_pipeline.corpus.corpus import Record
from bias_pipeline.io.hashing import hash_ids, random_words


class Alike(NamedTuple):
    """The annotator on one image."""

    id: str
    says: str
    left: tuple[str, ...]  # captions of the annotators that it is compared with
    used: tuple[str, ...]  # those that it is made of


def alike(images: Sequence[Record], seed: int = 0) -> list[Alike]:
    """The annotator on all images that have annotators enough; none without enough words."""
    order = {image.id: drawn_order(image, seed) for image in images}
    for n_joined in range(1, max(len(people) for people in order.values())):
        used = [image for image in images if len(image.human) > n_joined]
        if len(used) < len(images) / 2:
            break
        joined = {image.id: " ".join(order[image.id][:n_joined]).split() for image in used}
        lengths = sorted(len(image.model.split()) for image in used)
        ranked = sorted(
            used, key=lambda i: (len(joined[i.id]), draw("annotator's length", i.id, seed))
        )
        most = {image.id: length for image, length in zip(ranked, lengths, strict=True)}
        spoken = sum(min(len(joined[i.id]), most[i.id]) for i in used)
        if spoken >= 0.95 * sum(lengths):
            return [
                Alike(
                    i.id,
                    " ".join(joined[i.id][: most[i.id]]),
                    tuple(order[i.id][n_joined:]),
                    tuple(order[i.id][:n_joined]),
                )
                for i in used
            ]
    return []


def drawn_order(image: Record, seed: int) -> list[str]:
    """The image's human captions in the order of their draws."""
    draws = [draw("annotator alike", image.id, seed, k) for k in range(len(image.human))]
    return [image.human[k] for k in np.argsort(draws)]


def draw(purpose: str, image: str, seed: int, part: int = 0) -> int:
    """A random number by purpose, seed, image and part."""
    (word,) = random_words(purpose, seed, hash_ids([image]), np.array([part], np.uint64)).tolist()
    return int(word)
