"""Makes annotators' captions as long as the captioner's, to show which scores style can cause."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions, offsets
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.io.hashing import random_words
from bias_pipeline.text.matched import comparable

LONG_ENOUGH = 0.95  # share of the captioner's words that the annotator's captions must have; ours
LEAST_IMAGES = 0.5  # share of the compared images that must have enough annotators; ours


@dataclass(frozen=True)
class AlikeAnnotators:
    """Annotators who replace the captioner one by one, with captions of the same lengths.

    Attributes:
        corpus: captions before alignment, where human captions of each image are in random order.
        images: (N,) flags: true for images that have enough annotators.
        n_joined: how many captions of annotators are joined to reach the captioner's length.
        wanted: (N,) the number of words in each of the captioner's captions.
        seed: the seed of random draws.
    """

    corpus: Corpus
    images: BoolArray
    n_joined: int
    wanted: IntArray
    seed: int

    def turn(self, number: int) -> Corpus:
        """A corpus in which an annotator replaces the captioner.

        The first human caption of each image is by the annotator with whom the captioner is
        compared. The captions that were joined for the captioner come last.
        """
        human = self.corpus.human
        people = human.take(self.images[human.image_rows])
        n_people = np.bincount(people.image_rows, minlength=len(self.corpus))[people.image_rows]
        turned = (people.positions - number) % n_people
        ordered = people.take(np.lexsort((turned, people.image_rows)))
        joined = joined_captions(ordered.take(ordered.positions < self.n_joined))
        after = (turned - self.n_joined) % n_people
        speaker = self.corpus.rewrite(
            {
                "model": cut_captions(joined, self._largest(word_counts(joined))),
                "human": people.take(np.lexsort((after, people.image_rows))),
            }
        )
        return replace(
            speaker, captioner="an annotator alike", vocabulary=None, notes=(), tables={}
        )

    def _largest(self, joined: IntArray) -> IntArray:
        """(M,): the captioner's lengths, assigned to joined captions by rank; ties are random."""
        keys = self.corpus.keys[self.images]
        drawn = random_words("annotator's length", self.seed, keys)
        most = np.empty_like(joined)
        most[np.lexsort((drawn, joined))] = np.sort(self.wanted[self.images])
        return most


def alike_annotators(corpus: Corpus, seed: int) -> AlikeAnnotators:
    """Annotators whose captions are as long as the captioner's captions.

    The annotators of an image are put into a random order, drawn by the image id. For each image,
    captions are joined until they have as many words as the captioner's caption. The captioner's
    lengths are then assigned by rank: the longest joined caption gets the longest length. Each
    joined caption is cut to its length. So neither labels nor the images for which the captioner
    writes long captions can change scores.
    """
    images = comparable(corpus)
    captions = np.bincount(corpus.human.image_rows, minlength=len(corpus))
    if not (images & (captions > 1)).any():
        raise NotApplicableError(
            "annotators wrote one caption an image; two are needed, one in the captioner's place "
            "and one to compare it with"
        )
    wanted = np.zeros(len(corpus), np.int64)
    wanted[corpus.model.image_rows] = word_counts(corpus.model)
    drawn = corpus.rewrite({"human": _draw(corpus, seed)})
    reached = 0.0
    for n_joined in range(1, int(captions.max())):
        enough = images & (captions > n_joined)
        if enough.sum() < LEAST_IMAGES * images.sum():
            break
        alike = AlikeAnnotators(drawn, enough, n_joined, wanted, seed)
        spoken = word_counts(alike.turn(0).model).sum()
        reached = float(spoken / max(alike.wanted[alike.images].sum(), 1))
        if reached >= LONG_ENOUGH or not wanted[enough].any():
            return alike
    raise NotApplicableError(
        "human captions are too short or too few: all but one of an image's captions together "
        f"have {reached:.0%} of the captioner's words; {LONG_ENOUGH:.0%} are needed"
    )


def word_counts(captions: Captions) -> IntArray:
    """(N,): the number of words of each caption, without punctuation."""
    owner = np.repeat(np.arange(len(captions)), captions.lengths)
    return np.bincount(owner[_is_word(captions)], minlength=len(captions))


def joined_captions(captions: Captions) -> Captions:
    """One caption per image, which joins all captions of the image.

    Example:
        >>> joined_captions(Captions.from_texts(["a dog", "it runs", "a cat"], [0, 0, 1])).text(0)
        'a dog it runs'
    """
    first = np.flatnonzero(captions.positions == 0)
    starts = captions.starts[np.append(first, len(captions))]
    return Captions(captions.types, captions.tokens, starts, captions.image_rows[first])


def cut_captions(captions: Captions, most: IntArray) -> Captions:
    """Captions that are cut after their last allowed word.

    ``most`` (N,) is the largest number of words of each caption. Punctuation does not count.

    Example:
        >>> cut_captions(Captions.from_texts(["a dog , and more"]), np.array([2])).text(0)
        'a dog'
    """
    owner = np.repeat(np.arange(len(captions)), captions.lengths)
    before = offsets(_is_word(captions).astype(np.int64))
    retained = before[:-1] - before[captions.starts[owner]] < most[owner]
    lengths = np.bincount(owner[retained], minlength=len(captions))
    cut = Captions(captions.types, captions.tokens[retained], offsets(lengths), captions.image_rows)
    return cut.compact()


def _is_word(captions: Captions) -> BoolArray:
    """(T,) flags: true for tokens with a letter or digit."""
    words = np.array([any(map(str.isalnum, word)) for word in captions.types], bool)
    return words[captions.tokens]


def _draw(corpus: Corpus, seed: int) -> Captions:
    """The human captions in a random order that is drawn by image ids."""
    human = corpus.human
    keys, part = corpus.keys[human.image_rows], human.positions.astype(np.uint64)
    drawn = random_words("annotator alike", seed, keys, part)
    return human.take(np.lexsort((drawn, human.image_rows)))
