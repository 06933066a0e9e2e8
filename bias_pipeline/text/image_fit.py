"""Checks whether labels, objects, human captions and model captions are about the same images.

If the rows of a file are shifted by one, each image has the captions of another image. If the codes
of two groups are exchanged, each image has the wrong group. All numbers can still be computed, but
all are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.stats.shares import NORMAL_95, wilson
from bias_pipeline.text.mentions import lowered_words, named_group

# We chose the limits; `tests/text/test_image_fit.py` holds that they part the captions of 66 models
# of COCO from the same captions moved by one row. The share of the informedness is 0 by chance.
_LEAST_INFORMEDNESS = {"human": 0.3, "model": 0.2}
# How many times as many words are shared with texts of the same image as with those of others
_LEAST_WORDS = 1.5
# Share of distinct texts; fewer are no sign of moved rows, since they fit any image
_LEAST_DISTINCT = 0.1
_LEAST_IMAGES = 20
_PART = 100  # least number of consecutive images that are also judged by themselves
_MOST_PARTS = 20
_MOST_CAPTIONS = 100_000  # captions that are compared with labels
_MOST_IMAGES = 2_000  # images whose words are compared
MISFIT_REMEDY = (
    "check that each row's id is the id of its image, and that codes mean the right groups "
    "(audit --map LABEL=GROUP, dataset.label_map)"
)


def misfit(corpus: Corpus, attribute: Attribute) -> str:
    """The reason why labels or captions seem to belong to other images or groups; else empty.

    Labels are compared with the groups that human captions name, or that model captions name if
    there are no human captions. Words of model captions are compared with words of human captions.
    """
    return _labels_unlike(corpus, attribute) or corpus.read(_words_unlike)


def misfit_notes(corpus: Corpus, attribute: Attribute) -> list[str]:
    """Warnings if labels, captions or objects seem to belong to other images."""
    misfits = {
        attribute.name: misfit(corpus, attribute),
        "what needs objects": objects_misfit(corpus),
    }
    return [
        f"warning: {what} cannot be tested: {reason}; {MISFIT_REMEDY}"
        for what, reason in misfits.items()
        if reason
    ]


def _labels_unlike(corpus: Corpus, attribute: Attribute) -> str:
    grouping = corpus.groupings[attribute.name]
    side = "human" if len(corpus.human) else "model"
    captions = corpus.human if side == "human" else corpus.model
    named = named_group(captions, attribute, grouping.names)
    rows = _spread(len(named), _MOST_CAPTIONS)
    rows = rows[(named[rows] >= 0) & (grouping.codes[captions.image_rows[rows]] >= 0)]
    images, first = np.unique(captions.image_rows[rows], return_index=True)
    pairs = np.stack([named[rows[first]], grouping.codes[images]], axis=1)

    def unlike(part: IntArray) -> bool:
        named, labels = pairs[part].T
        return _informedness_below(named, labels, _LEAST_INFORMEDNESS[side])

    wrong = _unfitting(len(images), unlike)
    if not len(wrong):
        return ""
    share = (pairs[wrong, 0] != pairs[wrong, 1]).mean()
    whose = "human captions" if side == "human" else "its captions"
    return f"labels contradict {whose} in {share:.0%} of images{_range_of(corpus, images, wrong)}"


def _informedness_below(named: IntArray, labels: IntArray, share: float) -> bool:
    """Whether the informedness is surely below a share of the most that these captions allow.

    Informedness is Youden's J (1950), for K groups (sum of the groups' recalls - 1) / (K - 1).
    Informedness is 1 if all named groups are right, and 0 by chance, for any sizes of the groups.
    Captions that name one group too often allow less than 1: if a model calls everybody a man, the
    most is 0. We compare the upper end of the 95 % interval. False if all labels are of one group.
    """
    groups, sizes = np.unique(labels, return_counts=True)
    if len(groups) < 2:
        return False
    rights = np.array([np.sum(named[labels == k] == k) for k in groups])
    uses = np.array([np.sum(named == k) for k in groups])
    most = float(np.minimum(uses / sizes, 1).sum() - 1)
    recalls = rights / sizes
    above = (
        wilson(recall, size, NORMAL_95)[1] - recall
        for recall, size in zip(recalls.tolist(), sizes.tolist(), strict=True)
    )
    return float(recalls.sum() - 1) + math.hypot(*above) < share * most


def _words_unlike(corpus: Corpus) -> str:
    wrong = _of_other_images(corpus, corpus.model, corpus.human)
    return "" if wrong is None else f"its captions{wrong} seem to be of other images"


def objects_misfit(corpus: Corpus) -> str:
    """The reason why objects seem to belong to other images; else empty."""
    return corpus.read(_objects_unlike)


def _objects_unlike(corpus: Corpus) -> str:
    captions = corpus.human if len(corpus.human) else corpus.model
    if corpus.objects is None:
        return ""
    known = np.flatnonzero(np.fromiter(map(bool, corpus.objects), bool, len(corpus)))
    described = np.zeros(len(corpus), bool)
    described[captions.image_rows] = True
    known = known[described[known]]
    rows = known[_spread(len(known), _MOST_IMAGES)]
    texts = [" ".join(sorted(corpus.objects[row] or ())) for row in rows.tolist()]
    wrong = _of_other_images(corpus, Captions.from_texts(texts, rows), captions)
    return "" if wrong is None else f"objects{wrong} seem to be of other images"


def _of_other_images(corpus: Corpus, first: Captions, other: Captions) -> str | None:
    """The range of images whose texts do not fit: `` from ID to ID``, or empty for all images.

    The result is None if the texts fit, or if there are few images or few distinct texts.
    """
    described = np.zeros((2, len(corpus)), bool)
    described[0, first.image_rows] = described[1, other.image_rows] = True
    both = np.flatnonzero(described.all(axis=0))
    images = both[_spread(len(both), _MOST_IMAGES)]
    if len(images) < _LEAST_IMAGES:
        return None
    place = np.full(len(corpus), -1, np.int64)
    place[images] = images
    chosen, beside = (side.of_images_at(place) for side in (first, other))
    if len(np.unique(chosen.identities)) < _LEAST_DISTINCT * len(images):
        return None
    shared, usual = shared_words(chosen, beside, images)
    excess = shared - _LEAST_WORDS * usual

    def unlike(part: IntArray) -> bool:
        error = excess[part].std() / math.sqrt(len(part))
        return bool(excess[part].mean() + NORMAL_95 * error < 0)

    wrong = _unfitting(len(images), unlike)
    return _range_of(corpus, images, wrong) if len(wrong) else None


def _spread(size: int, most: int) -> IntArray:
    """At most ``most`` evenly spaced numbers below ``size``."""
    return np.linspace(0, size - 1, min(size, most)).astype(np.int64)


def shared_words(
    first: Captions, other: Captions, images: IntArray
) -> tuple[Float64Array, Float64Array]:
    """How many words texts share with other texts of the same image, and of other images.

    Both results are (M,) for M images, and at least 0. A word counts as -log(s), where s is the
    share of images with the word in their other texts.
    """
    columns: dict[str, int] = {}

    def table(captions: Captions) -> sparse.csr_array:
        words = lowered_words(captions)
        places = np.array([columns.setdefault(word, len(columns)) for word in words.types])
        rows = np.searchsorted(images, np.repeat(words.image_rows, words.lengths))
        cells = (np.ones(len(rows)), (rows, places[words.tokens]))
        counts = sparse.csr_array(cells, shape=(len(images), 1 + len(columns)))
        counts.data[:] = 1.0
        return counts

    beside = table(other)
    chosen = table(first)[:, : beside.shape[1]]
    uses = np.asarray(beside.sum(axis=0)).ravel()
    weighted = chosen * np.log(len(images) / np.maximum(uses, 1))
    shared = np.asarray((weighted * beside).sum(axis=1)).ravel()
    return shared, (weighted @ uses - shared) / (len(images) - 1)


def _unfitting(n_images: int, unlike: Callable[[IntArray], bool]) -> IntArray:
    """The indices, among N images in order, of images that do not fit: all, some parts, or none."""
    everything = np.arange(n_images)
    if n_images < _LEAST_IMAGES:
        return everything[:0]
    if unlike(everything):
        return everything
    return np.concatenate([everything[:0], *filter(unlike, _parts(everything))])


def _parts(places: IntArray) -> Iterator[IntArray]:
    count = min(_MOST_PARTS, len(places) // _PART)
    yield from np.array_split(places, count) if count > 1 else ()


def _range_of(corpus: Corpus, images: IntArray, wrong: IntArray) -> str:
    """The first and the last image that do not fit, as text; empty if no image fits."""
    if len(wrong) == len(images):
        return ""
    first, last = (corpus.ids[images[place]] for place in (wrong[0], wrong[-1]))
    return f" from {first} to {last}"
