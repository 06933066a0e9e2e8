"""Whether a word is said of somebody, by the words beside it: "a black man", not "a black dog".

It goes by lists (:class:`~bias_pipeline.corpus.attribute.Context`) and the order of English
words, without a parser. A word that no list knows ends the search: what is found is said of
somebody, but not all that is said is found ("a black bearded man": is it the beard?).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import Context, Words, words_of
from bias_pipeline.corpus.captions import Captions

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def said_of(captions: Captions, places: IntArray, context: Context) -> Mask:
    """(P,) which of P running words are said of somebody.

    A word is if it is itself a word for somebody ("africans"); if one follows, with nothing but
    words between that may stand there, and is not itself said of something else ("a black young
    man", not "a white chef hat"); or if one stands before and is linked to it ("a man who is
    black").

    Args:
        captions: lower-case words without signs.
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
    """The words beside P places; beyond a caption's first and last there are none."""

    def __init__(self, captions: Captions, places: IntArray, context: Context) -> None:
        self.captions, self.places = captions, places
        lists = (context.words, context.between, context.other_heads)
        self.words, self.between, self.other_heads = map(_set, lists)
        self.linking, self.closing = _set(context.linking), _set(context.closing)
        caption = np.searchsorted(captions.starts, places, side="right") - 1
        self.first, self.end = captions.starts[caption], captions.starts[caption + 1]

    def itself(self) -> Mask:
        """Whether the word is one for somebody."""
        return self._among(self.words, self.places)

    def before(self) -> Mask:
        """Whether it stands before a word for somebody; "police officer" and the like are one."""
        noun = self._past(self.between - self.words, self.places + 1, 1)
        behind = self._past(self.words, noun, 1)
        return (behind > noun) & ~self._among(self.other_heads, behind)

    def after(self) -> Mask:
        """Whether a verb links it to a word for somebody, and nothing follows that it describes."""
        noun = self._past(self.linking, self.places - 1, -1)
        following = self.places + 1
        last = (following == self.end) | self._among(self.closing, following)
        return (noun < self.places - 1) & self._among(self.words, noun) & last

    def _among(self, words: frozenset[str], places: IntArray) -> Mask:
        """Whether the words at (P,) places are some of these."""
        known = np.array([word in words for word in self.captions.types], bool)
        inside = (self.first <= places) & (places < self.end)
        found: Mask = inside.copy()
        found[inside] = known[self.captions.tokens[places[inside]]]
        return found

    def _past(self, words: frozenset[str], places: IntArray, step: int) -> IntArray:
        """(P,) the nearest places, from the given ones on, that hold none of these words."""
        while (on := self._among(words, places)).any():
            places = places + step * on
        return places


def _set(words: Words) -> frozenset[str]:
    return frozenset(words_of(words))
