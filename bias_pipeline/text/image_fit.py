"""Whether labels, human captions and the model's captions are about the same images.

If the rows of a file move by one place, or if the codes of two groups are exchanged, each image has
another image's captions or another group. All numbers can still be computed, and all are wrong.
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

# By chance groups are told with an informedness of 0; annotators on COCO have 0.95, and 66 of 67
# models 0.39 or more (the other was trained to tell images apart and has 0.18).
_LEAST_INFORMEDNESS = {"human": 0.3, "model": 0.2}
# These models share 2.5 to 7 times as many words with human captions of their image as with those
# of other images; moved by one row, they share 0.9 to 1.1 times as many.
_LEAST_WORDS = 1.5
_LEAST_IMAGES = 20
_PART = 100  # consecutive images that are also judged by themselves
_MOST_PARTS = 20
MISFIT_REMEDY = (
    "check that each row's id is the id of its image, and that codes mean the right groups "
    "(audit --map LABEL=GROUP, dataset.label_map)"
)
_LEAST_DISTINCT = 0.1  # fewer distinct captions may be about any image by the model's own choice


def misfit(corpus: Corpus, attribute: Attribute) -> str:
    """Why labels or captions seem to be of other images or groups; empty if they seem right.

    Labels are compared with the groups that human captions name (the model's captions if there are
    none), and words of the model's captions with those of human captions.
    """
    return _labels_unlike(corpus, attribute) or corpus.read(_words_unlike)


def misfit_notes(corpus: Corpus, attribute: Attribute) -> list[str]:
    """A warning if labels or captions seem to be of other images."""
    if not (reason := misfit(corpus, attribute)):
        return []
    return [f"warning: {attribute.name} cannot be tested: {reason}; {MISFIT_REMEDY}"]


def _labels_unlike(corpus: Corpus, attribute: Attribute) -> str:
    grouping = corpus.groupings[attribute.name]
    side = "human" if len(corpus.human) else "model"
    captions = corpus.human if side == "human" else corpus.model
    named = named_group(captions, attribute, grouping.names)
    usable = np.flatnonzero((named >= 0) & (grouping.codes[captions.image_rows] >= 0))
    images, first = np.unique(captions.image_rows[usable], return_index=True)
    pairs = np.stack([named[usable[first]], grouping.codes[images]], axis=1)

    def unlike(part: IntArray) -> bool:
        return _highest_informedness(*pairs[part].T) < _LEAST_INFORMEDNESS[side]

    wrong = _unfitting(len(images), unlike)
    if not len(wrong):
        return ""
    share = (pairs[wrong, 0] != pairs[wrong, 1]).mean()
    whose = "human captions" if side == "human" else "its captions"
    return f"labels contradict {whose} in {share:.0%} of images{_range_of(corpus, images, wrong)}"


def _highest_informedness(named: IntArray, labels: IntArray) -> float:
    """The upper end of the 95 % interval of how well named groups tell labels; NaN for one label.

    It is Youden's J (1950), for K groups (sum of the groups' recalls - 1) / (K - 1): 1 if all names
    are right, 0 by chance, whatever the groups' sizes.
    """
    rights = [named[labels == k] == k for k in np.unique(labels)]
    if len(rights) < 2:
        return math.nan
    recalls = [float(right.mean()) for right in rights]
    above = (
        wilson(recall, len(right), NORMAL_95)[1] - recall
        for recall, right in zip(recalls, rights, strict=True)
    )
    return (sum(recalls) - 1 + math.hypot(*above)) / (len(rights) - 1)


def _words_unlike(corpus: Corpus) -> str:
    both = np.intersect1d(corpus.model.image_rows, corpus.human.image_rows)
    most = _PART * _MOST_PARTS
    images = both[np.linspace(0, len(both) - 1, min(len(both), most)).astype(int)]
    if len(images) < _LEAST_IMAGES:
        return ""
    some = corpus.take(images)
    if len(np.unique(some.model.identities)) < _LEAST_DISTINCT * len(images):
        return ""
    own, others = shared_words(some.model, some.human, np.arange(len(images)))
    excess = own - _LEAST_WORDS * others

    def unlike(part: IntArray) -> bool:
        error = excess[part].std() / math.sqrt(len(part))
        return bool(excess[part].mean() + NORMAL_95 * error < 0)

    wrong = _unfitting(len(images), unlike)
    if not len(wrong):
        return ""
    return f"its captions{_range_of(corpus, images, wrong)} seem to be of other images"


def shared_words(
    model: Captions, human: Captions, images: IntArray
) -> tuple[Float64Array, Float64Array]:
    """How many words the model's captions share with human captions of their and other images.

    Args:
        model: captions of the images.
        human: captions of the images.
        images: the (M,) rows of the images, ascending.

    Returns:
        (M,) words shared with the image's own human captions; (M,) the mean over the other images.
        Each word counts as the logarithm of the share of images whose human captions have it,
        without sign.
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

    people = table(human)
    of_model = table(model)[:, : people.shape[1]]
    uses = np.asarray(people.sum(axis=0)).ravel()
    weighted = of_model * np.log(len(images) / np.maximum(uses, 1))
    own = np.asarray((weighted * people).sum(axis=1)).ravel()
    return own, (weighted @ uses - own) / (len(images) - 1)


def _unfitting(n_images: int, unlike: Callable[[IntArray], bool]) -> IntArray:
    """The places of images that are unlike, of N in their order: all, some parts, or none."""
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
    """Between which images all unfitting images lie; empty if these are all images."""
    if len(wrong) == len(images):
        return ""
    first, last = (corpus.ids[images[place]] for place in (wrong[0], wrong[-1]))
    return f" from {first} to {last}"
