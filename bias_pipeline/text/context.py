"""Whether a word describes a person, by its neighbours: "a black man", not "a black dog".

It uses lists (:class:`~bias_pipeline.corpus.attribute.Context`) and English word order, no parser.
A word in no list ends the search, so matches are reliable but some are missed ("a black bearded
man").
"""

from __future__ import annotations

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import Context, Words, words_of
from bias_pipeline.corpus.captions import Captions


def said_of(captions: Captions, places: IntArray, context: Context) -> BoolArray:
    """(P,) which of P running words describe a person.

    A word does if it is itself a noun for a person ("africans"); if such a noun follows, with only
    listed words between, and does not describe something else ("a black young man", not "a white
    chef hat"); or if such a noun precedes and is linked to it ("a man who is black").

    Args:
        captions: lower-case words without punctuation.
        places: positions in ``captions.tokens``.
        context: the lists.

    Example:
        >>> person = Context("man, chef", between="young", other_heads="hat")
        >>> text = "a black young man with a black dog and a white chef hat"
        >>> captions = Captions.from_texts([text])
        >>> said_of(captions, np.array([1, 6, 10]), context=person).tolist()
        [True, False, False]
    """
    beside = _Beside(captions, places, context)
    return beside.itself() | beside.before() | beside.after()


class _Beside:
    """The neighbours of the words at P places, within their captions."""

    def __init__(self, captions: Captions, places: IntArray, context: Context) -> None:
        self.captions, self.places = captions, places
        lists = (context.words, context.between, context.other_heads)
        self.words, self.between, self.other_heads = map(_set, lists)
        self.linking, self.closing = _set(context.linking), _set(context.closing)
        caption = np.searchsorted(captions.starts, places, side="right") - 1
        self.first, self.end = captions.starts[caption], captions.starts[caption + 1]

    def itself(self) -> BoolArray:
        """Whether the word is a noun for a person."""
        return self._among(self.words, self.places)

    def before(self) -> BoolArray:
        """Whether it precedes a noun for a person; "police officer" counts as one."""
        noun = self._past(self.between - self.words, self.places + 1, 1)
        behind = self._past(self.words, noun, 1)
        return (behind > noun) & ~self._among(self.other_heads, behind)

    def after(self) -> BoolArray:
        """Whether a verb links it to a noun for a person, and no noun follows that it describes."""
        noun = self._past(self.linking, self.places - 1, -1)
        following = self.places + 1
        last = (following == self.end) | self._among(self.closing, following)
        return (noun < self.places - 1) & self._among(self.words, noun) & last

    def _among(self, words: frozenset[str], places: IntArray) -> BoolArray:
        """Whether the words at (P,) places are some of these."""
        known = np.array([word in words for word in self.captions.types], bool)
        inside = (self.first <= places) & (places < self.end)
        matches: BoolArray = inside.copy()
        matches[inside] = known[self.captions.tokens[places[inside]]]
        return matches

    def _past(self, words: frozenset[str], places: IntArray, step: int) -> IntArray:
        """(P,) the nearest places, from the given ones on, with none of these words."""
        while (on := self._among(words, places)).any():
            places = places + step * on
        return places


def _set(words: Words) -> frozenset[str]:
    return frozenset(words_of(words))
