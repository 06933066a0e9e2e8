"""Masking replaces the words that reveal the group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bias_pipeline.corpus.attribute import Words, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus, Side
from bias_pipeline.errors import inflect
from bias_pipeline.text.tokenize import as_tokens
from bias_pipeline.text.transform import TextTransform, is_special

_SHOWN = 5  # words, in a note


class MaskWords(TextTransform):
    """Replaces listed words and phrases by one token.

    Words are compared after tokenising. If a side's captions are not in lower case, "Man" differs
    from "man" (as in LIC's published protocol). A word is masked in every context.

    Args:
        words: what is masked: lists, text with commas, or mappings from groups to lists or text,
            which may be nested. Write a phrase with single blanks ("hot dog") or with its hyphen
            ("dark-skinned").
        token: what replaces a masked word.
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
        sides: Sequence[Side] = SIDES,
    ) -> None:
        super().__init__(sides)
        self.words = _tokenize(words)
        self.token = token

    def __call__(self, corpus: Corpus) -> Corpus:
        """The corpus after masking. A note says which words remain because of capital letters."""
        masked = super().__call__(corpus)
        notes = [note for side in self.sides if (note := self._count_unmasked(corpus, side))]
        return replace(masked, notes=(*masked.notes, *notes))

    def _count_unmasked(self, corpus: Corpus, side: Side) -> str:
        """A note on listed words of a side that remain because of capital letters; may be empty."""
        captions = corpus.side(side)
        counts = {
            word: int(captions.counts[number])
            for number, word in enumerate(captions.types)
            if word not in self.words and word.lower() in self.words
        }
        if not counts:
            return ""
        often = sorted(counts, key=lambda word: (-counts[word], word))
        shown = ", ".join(f"{word!r} {counts[word]} times" for word in often[:_SHOWN])
        whose = "the captioner's captions" if side == "model" else "human captions"
        return (
            f"{inflect(sum(counts.values()), 'words with capitals are not masked')} in {whose}, "
            f"which are not lower-cased: {shown}; text.lowercase=[model,human] masks them"
        )

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of one side after masking."""
        return self.mask(corpus.side(side))

    def mask(self, captions: Captions) -> Captions:
        """Captions in which every listed word is replaced."""
        joined = captions.join(sorted(self.words))
        return joined.rewrite(lambda word: (self.token,) if word in self.words else (word,))


class KeepWords(TextTransform):
    """Drops every word that is neither listed nor a special token.

    Args:
        words: what is kept, in the forms that :class:`MaskWords` accepts.
        sides: which captions are rewritten.

    Example:
        >>> from bias_pipeline.corpus.captions import Captions
        >>> KeepWords(["bride"]).keep(Captions.from_texts(["the <mask> and a bride"])).text(0)
        '<mask> bride'
    """

    def __init__(self, words: Words, sides: Sequence[Side] = SIDES) -> None:
        super().__init__(sides)
        self.words = _tokenize(words)

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of one side, reduced to the listed words."""
        return self.keep(corpus.side(side))

    def keep(self, captions: Captions) -> Captions:
        """The captions, reduced to the listed words."""
        return captions.join(sorted(self.words)).rewrite(
            lambda word: (word,) if word in self.words or is_special(word) else ()
        )


def _tokenize(words: Words) -> frozenset[str]:
    """Words and phrases in the form of tokenised captions."""
    return frozenset(map(as_tokens, words_of(words)))
