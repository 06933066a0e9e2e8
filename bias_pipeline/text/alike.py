"""An annotator brought to the captioner's length: what a score at equal speech is held against."""

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
LEAST_IMAGES = 0.5  # share of the compared images that must have annotators enough; ours


@dataclass(frozen=True, eq=False)
class AlikeAnnotator:
    """An annotator in the captioner's place, and the annotators whom nothing was taken from."""

    # The annotator's captions as the captioner's; of the human captions of each image, those that
    # the annotator's was made of stand last
    corpus: Corpus
    remaining: IntArray  # (N,) how many human captions of each image the annotator is compared with

    def compared(self, matched: Corpus) -> Corpus:
        """The corpus after alignment, without the captions that the annotator's were made of.

        Args:
            matched: ``corpus`` after alignment.
        """
        human = matched.human
        left = human.positions < self.remaining[human.image_rows]
        return matched.rewrite({"human": human.take(left)})


def alike_annotator(corpus: Corpus, seed: int) -> AlikeAnnotator:
    """An annotator whose captions are as long as the captioner's.

    The annotators of an image are put into an order drawn by its id. The captions of the first are
    joined: of as few as are together as long as the captioner's captions. The captioner's lengths
    are then dealt out by rank, the longest to the image with the longest joined caption, and each
    joined caption is cut to its length. So which image the captioner says more about decides
    nothing, and neither do labels.

    Args:
        corpus: captions as they are before alignment, without words that name groups.
        seed: of the draws.

    Raises:
        NotApplicableError: if the images have too few human captions, or these are too short.
    """
    human, model = _drawn(corpus, seed), corpus.model
    images, captions = comparable(corpus), np.bincount(human.image_rows, minlength=len(corpus))
    wanted = np.zeros(len(corpus), np.int64)
    wanted[model.image_rows] = word_counts(model)
    if not (images & (captions > 1)).any():
        raise NotApplicableError(
            "people wrote one caption an image; one who takes the captioner's place and another "
            "to compare with are needed"
        )
    reached = 0.0
    for n_joined in range(1, int(captions.max())):
        enough = images & (captions > n_joined)
        if enough.sum() < LEAST_IMAGES * images.sum():
            break
        chosen = (human.positions < n_joined) & enough[human.image_rows]
        joined = joined_captions(human.take(chosen))
        most = _dealt(wanted[enough], word_counts(joined), corpus, enough, seed)
        reached = float(np.minimum(word_counts(joined), most).sum() / max(most.sum(), 1))
        if reached >= LONG_ENOUGH or not most.any():
            people = human.take(enough[human.image_rows])
            speaker = corpus.rewrite(
                {"model": cut_captions(joined, most), "human": _put_last(people, n_joined)}
            )
            speaker = replace(
                speaker, captioner="an annotator alike", vocabulary=None, notes=(), tables={}
            )
            return AlikeAnnotator(speaker, np.maximum(captions - n_joined, 0))
    raise NotApplicableError(
        f"people's captions are too short or too few: all of an image but one, joined, have "
        f"{reached:.0%} of the captioner's words, and {LONG_ENOUGH:.0%} are needed"
    )


def word_counts(captions: Captions) -> IntArray:
    """(N,) how many words each caption has; punctuation is no word."""
    owner = np.repeat(np.arange(len(captions)), captions.lengths)
    return np.bincount(owner[_is_word(captions)], minlength=len(captions))


def joined_captions(captions: Captions) -> Captions:
    """One caption an image: all of its captions, one after the other.

    Example:
        >>> joined_captions(Captions.from_texts(["a dog", "it runs", "a cat"], [0, 0, 1])).text(0)
        'a dog it runs'
    """
    first = np.flatnonzero(captions.positions == 0)
    starts = captions.starts[np.append(first, len(captions))]
    return Captions(captions.types, captions.tokens, starts, captions.image_rows[first])


def cut_captions(captions: Captions, most: IntArray) -> Captions:
    """Captions that end with their last allowed word.

    Args:
        captions: N of them.
        most: (N,) how many words each may have; punctuation is no word.

    Example:
        >>> cut_captions(Captions.from_texts(["a dog , and more"]), np.array([2])).text(0)
        'a dog'
    """
    owner = np.repeat(np.arange(len(captions)), captions.lengths)
    before = offsets(_is_word(captions).astype(np.int64))
    kept = before[:-1] - before[captions.starts[owner]] < most[owner]
    lengths = np.bincount(owner[kept], minlength=len(captions))
    cut = Captions(captions.types, captions.tokens[kept], offsets(lengths), captions.image_rows)
    return cut.compact()


def _is_word(captions: Captions) -> BoolArray:
    """(T,) whether each token has a letter or digit."""
    words = np.array([any(map(str.isalnum, word)) for word in captions.types], bool)
    return words[captions.tokens]


def _drawn(corpus: Corpus, seed: int) -> Captions:
    """The human captions, those of each image in an order drawn by its id."""
    human = corpus.human
    keys, part = corpus.keys[human.image_rows], human.positions.astype(np.uint64)
    drawn = random_words("annotator alike", seed, keys, part)
    return human.take(np.lexsort((drawn, human.image_rows)))


def _dealt(
    lengths: IntArray, joined: IntArray, corpus: Corpus, images: BoolArray, seed: int
) -> IntArray:
    """(M,) the captioner's lengths in the order of those of joined captions; ties are drawn."""
    drawn = random_words("annotator's length", seed, corpus.keys[images])
    dealt = np.empty_like(lengths)
    dealt[np.lexsort((drawn, joined))] = np.sort(lengths)
    return dealt


def _put_last(people: Captions, n_joined: int) -> Captions:
    """Captions with the first few of each image after its others."""
    turned = np.where(people.positions < n_joined, len(people), 0) + people.positions
    return people.take(np.lexsort((turned, people.image_rows)))
