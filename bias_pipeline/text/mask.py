"""Masking: replace the words that would give the group away."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.corpus.attribute import Words, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.text.transform import TextTransform, is_special


class MaskWords(TextTransform):
    """Replace listed words and phrases by one token.

    Words are compared as they stand after tokenising: on a side that is not lower-cased "Man" is
    not "man" (a quirk of the published LIC protocol). Whatever stands by a word, it is masked.

    Args:
        words: what is masked: lists, text with commas, and mappings of groups to them, nested as
            you like; a phrase is written with single blanks ("hot dog"), or with the hyphen it has
            ("dark-skinned").
        token: what stands in its place.
        sides: which captions are masked.

    Example:
        >>> from bias_pipeline.corpus.captions import Captions
        >>> mask = MaskWords(["man", "hot dog"], "<mask>")
        >>> mask.mask(Captions.from_texts(["a man eats a hot dog"])).text(0)
        'a <mask> eats a <mask>'
    """

    def __init__(
        self,
        words: Words,
        token: str,
        sides: Sequence[str] = SIDES,
    ) -> None:
        super().__init__(sides)
        self.words = _tokenized(words)
        self.token = token

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of one side, masked."""
        return self.mask(corpus.side(side))

    def mask(self, captions: Captions) -> Captions:
        """Captions with every listed word replaced."""
        found = captions.join(sorted(self.words))
        return found.rewrite(lambda word: (self.token,) if word in self.words else (word,))


class KeepWords(TextTransform):
    """Drop every word but the listed ones and special tokens.

    What an attacker scores on such captions is what the listed words alone give away.

    Args:
        words: what is kept, in the same forms.
        sides: which captions are rewritten.

    Example:
        >>> from bias_pipeline.corpus.captions import Captions
        >>> KeepWords(["bride"]).keep(Captions.from_texts(["the <mask> and a bride"])).text(0)
        '<mask> bride'
    """

    def __init__(self, words: Words, sides: Sequence[str] = SIDES) -> None:
        super().__init__(sides)
        self.words = _tokenized(words)

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of one side, reduced to the listed words."""
        return self.keep(corpus.side(side))

    def keep(self, captions: Captions) -> Captions:
        """Captions reduced to the listed words."""
        return captions.join(sorted(self.words)).rewrite(
            lambda word: (word,) if word in self.words or is_special(word) else ()
        )


def _tokenized(words: Words) -> frozenset[str]:
    """Words and phrases as they stand in tokenised captions, where a hyphen is a token."""
    return frozenset(word.replace("-", " - ") for word in words_of(words))
