"""Removes human captions that describe nothing: stock sentences and repeated captions.

Some data sets (VizWiz) use one fixed sentence for all pictures that annotators could not describe.
Some programs repeat captions until each image has five.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import words_of
from bias_pipeline.corpus.captions import Captions, each_caption, offsets
from bias_pipeline.corpus.corpus import BLANK_LIMIT, BLANK_WARNING, Corpus
from bias_pipeline.errors import DataError, inflect
from bias_pipeline.io.hashing import UIntArray, hash_ids, mix

# A stock sentence is the same for more than this share of the images, for at least so many, and at
# least so many times as often as the next most frequent caption.
SHARE, FEWEST, TIMES = 0.02, 10, 3
_CHANCE = 2  # so many captions of an image may be equal by chance
# Images with repeated captions; in fewer images all repeated captions may come last by chance
FILLED = 30
# Words of sentences about persons that describe nobody in particular
_NOBODY = words_of(
    "person, persons, people, human, humans, someone, somebody, individual, individuals"
)
_LONGEST = 60  # characters of a sentence in a note
_AT_ONCE = 1 << 13  # captions hashed at once, so that their numbers stay in a core's cache


def without_stock(
    corpus: Corpus, persons: Iterable[str] = (), blank_limit: float = BLANK_LIMIT
) -> Corpus:
    """The corpus without human captions that describe nothing, and a note on each kind.

    An error is raised if blank captions and stock sentences together exceed the share
    ``blank_limit``, in [0, 1], of human captions.
    """
    human, marked, blank = corpus.human, corpus.marked, corpus.blanks.get("human", 0)
    sentences = _Sentences.find(human, frozenset(persons) - frozenset(_NOBODY))
    stock = sentences.stock()
    left_out = stock | marked if len(marked) else stock
    notes = []
    if left_out.any():
        fault = _fault(human, left_out, sentences.quote(stock), int(marked.sum()))
        absent = (int(left_out.sum()) + blank) / (len(human) + blank)
        if absent > blank_limit:
            raise DataError(
                f"dataset {corpus.dataset!r}: {fault}; with blank captions {absent:.1%} are "
                f"absent, above the limit of {blank_limit:.0%}; complete them, score them with "
                "text.stock=keep, or raise dataset.blank_limit"
            )
        warning = "warning: " if absent > BLANK_WARNING else ""
        notes.append(f"{warning}{fault}: they count as absent (text.stock=keep keeps them)")
        human = human.take(~left_out)
    copies = _copies(human)
    if copies.any():
        n_images = len(np.unique(human.image_rows[copies]))
        notes.append(
            f"{inflect(n_images, 'images have')} human captions that were repeated to fill a "
            f"list: {inflect(int(copies.sum()), 'copies are')} left out (text.stock=keep keeps "
            "them)"
        )
        human = human.take(~copies)
    if not notes:
        return corpus
    return replace(corpus.rewrite({"human": human}), notes=(*corpus.notes, *notes))


def _fault(human: Captions, left_out: BoolArray, sentences: str, n_marked: int) -> str:
    n_left_out = int(left_out.sum())
    share = f"of {len(human)} human captions ({n_left_out / len(human):.1%})"
    marks = f"{n_marked} by their file's is_precanned or is_rejected" if n_marked else ""
    which = "; ".join(filter(None, [sentences, marks]))
    return f"{inflect(n_left_out, f'{share} describe')} nothing ({which})"


@dataclass(frozen=True)
class _Sentences:
    """Human captions in lower case without punctuation, each as one sentence."""

    captions: Captions  # C captions, as they are
    numbers: IntArray  # (C,) the number of each sentence; sentences in the most images come first
    images: IntArray  # (S,) how many images have each sentence, descending
    describing: frozenset[str]  # words that describe somebody

    @classmethod
    def find(cls, captions: Captions, describing: frozenset[str]) -> _Sentences:
        hashes = captions.read(_hash_letters)
        _, numbers = np.unique(hashes, return_inverse=True)
        pairs = np.unique(hashes + mix(captions.image_rows.astype(np.uint64)), return_index=True)[1]
        images = np.bincount(numbers[pairs])
        order = np.argsort(-images, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return cls(captions, place[numbers], images[order], describing)

    def stock(self) -> BoolArray:
        number = 0
        while self._stands_out(number):
            number += 1
        return self.numbers < number

    def _stands_out(self, number: int) -> bool:
        """Whether a sentence is a stock sentence, that is, far more frequent than the next one."""
        images, following = [*self.images[number : number + 2], 0, 0][:2]
        described = int((self.captions.positions == 0).sum())
        frequent = images >= FEWEST and images > SHARE * described
        return frequent and images >= TIMES * following > 0 and not self._describes(number)

    def _text(self, number: int) -> str:
        return self.captions.text(int(np.argmax(self.numbers == number)))

    def _describes(self, number: int) -> bool:
        return not self.describing.isdisjoint(map(_letters, self._text(number).split()))

    def quote(self, stock: BoolArray) -> str:
        texts = [self._text(number) for number in np.unique(self.numbers[stock]).tolist()]
        return ", ".join(
            repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") for text in texts
        )


def _letters(word: str) -> str:
    """A word in lower case without punctuation; may be empty."""
    return "".join(filter(str.isalnum, word)).lower()


@each_caption
def _hash_letters(captions: Captions) -> UIntArray:
    return _hashes(captions, list(map(_letters, captions.types)))


@each_caption
def _hash_words(captions: Captions) -> UIntArray:
    return _hashes(captions, captions.types)


def _hashes(captions: Captions, words: Sequence[str]) -> UIntArray:
    """(C,): a hash of each caption. Captions with equal words have equal hashes.

    ``words`` (V,) are the distinct words in the form that is compared. This form is empty for words
    that are ignored.
    """
    of_types, count = hash_ids(words), np.array(list(map(bool, words)), bool)
    hashes = np.empty(len(captions), np.uint64)
    for first in range(0, len(captions), _AT_ONCE):
        starts = captions.starts[first : first + _AT_ONCE + 1]
        tokens = captions.tokens[starts[0] : starts[-1]]
        starts = starts - starts[0]
        before = offsets(count[tokens])
        place = before[:-1] - np.repeat(before[starts[:-1]], np.diff(starts))
        terms = of_types[tokens] * (2 * place + 1).astype(np.uint64) * count[tokens]
        total = np.zeros(len(terms) + 1, np.uint64)
        np.cumsum(terms, out=total[1:])
        hashes[first : first + _AT_ONCE] = np.diff(total[starts])
    return hashes


def _copies(captions: Captions) -> BoolArray:
    """(C,) flags: true for captions that only repeat another caption of their image.

    If all captions of an image are equal, the repeated ones count. Two equal captions count only if
    no image has more than two captions, because they may otherwise be equal by chance. On other
    images, repeated captions count only if all images have the same number of captions and repeated
    captions always come last. Captions that annotators wrote would come in any order.
    """
    images = captions.image_rows
    hashes = captions.read(_hash_words) + mix(images.astype(np.uint64))
    repeated = np.ones(len(captions), bool)
    repeated[np.unique(hashes, return_index=True)[1]] = False
    total = np.bincount(images)
    copies = np.bincount(images[repeated], minlength=len(total))
    filled = len(np.unique(total[total > 0])) == 1 and (copies > 0).sum() >= FILLED
    behind = captions.positions[repeated] >= (total - copies)[images[repeated]]
    if filled and behind.all():
        return repeated
    alike = (copies == total - 1) & (total >= min(_CHANCE + 1, total.max(initial=0)))
    return repeated & alike[images]
