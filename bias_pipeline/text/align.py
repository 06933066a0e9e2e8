"""Alignment limits human captions to a vocabulary, so that rare words reveal nothing.

Annotators use far more words than captioners. So LIC replaces human words that the captioner does
not use (Hirota et al. 2022, section 4.1). RELIC's appendix C has another rule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Side
from bias_pipeline.errors import DataError
from bias_pipeline.text.transform import TextTransform, is_special

Vocabulary = Literal["captions", "published"]


class VocabularyAlignment(TextTransform):
    """Replace every word outside a vocabulary, except special tokens.

    Args:
        vocabulary: ``captions``: the words of all of the captioner's captions as they reach this
            transform (masked, if masking comes first), also of images that are not scored, so
            captions of unsure images can move human scores. The vocabulary is the same for every
            attribute (DBAC section 4.2; the published LIC lists serve gender, race and age alike).
            ``published``: the list that came with the captioner. The published LIC lists
            were made after masking gender, so they contain no gender words: with these lists,
            unmasked gender words (race, age) disappear from the human side only. The default avoids
            that.
        replacement: the tokens put in place of an unknown word. The published LSTM protocol ends
            up with three: ``["<", "unk", ">"]``.
        sides: which captions are aligned; with ``captions`` aligning ``model`` changes nothing.
        keep: words that stay although they are in no vocabulary. LIC never aligns a masked word,
            but its published lists contain only the mask token of gender.
    """

    def __init__(
        self,
        vocabulary: Vocabulary = "captions",
        replacement: Sequence[str] = ("<unk>",),
        sides: Sequence[Side] = ("human",),
        keep: Sequence[str] = (),
    ) -> None:
        super().__init__(sides)
        self.vocabulary = vocabulary
        self.replacement = tuple(replacement)
        self.keep = frozenset(keep)

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of one side after alignment."""
        unknown = frozenset(self.unknown_words(corpus, side))
        return corpus.side(side).rewrite(
            lambda word: self.replacement if word in unknown else (word,)
        )

    def unknown_words(self, corpus: Corpus, side: str) -> list[str]:
        """The distinct words of a side that :meth:`rewrite` replaces."""
        known = self.known_words(corpus) | self.keep
        return [
            word for word in corpus.side(side).types if word not in known and not is_special(word)
        ]

    @abstractmethod
    def known_words(self, corpus: Corpus) -> frozenset[str]:
        """The words that stay."""

    def captioner_words(self, corpus: Corpus) -> frozenset[str]:
        """The captioner's vocabulary.

        Raises:
            DataError: if the published list is asked for and the data set has none.
        """
        if self.vocabulary == "captions":
            return frozenset(corpus.model.compact().types)
        if corpus.vocabulary is None:
            raise DataError(
                f"captioner {corpus.captioner!r} of dataset {corpus.dataset!r} has no published "
                "vocabulary; use alignment.vocabulary=captions"
            )
        return corpus.vocabulary


class ConstantAlignment(VocabularyAlignment):
    """``alignment=constant`` keeps only words that the captioner uses (LIC)."""

    def known_words(self, corpus: Corpus) -> frozenset[str]:
        """The captioner's vocabulary."""
        return self.captioner_words(corpus)


class TopNAlignment(VocabularyAlignment):
    """``alignment=top_n`` keeps the n most common human words (RELIC, appendix C).

    Here n is the size of the captioner's vocabulary. Special tokens do not count. If words are
    equally common, the alphabet decides.
    """

    def known_words(self, corpus: Corpus) -> frozenset[str]:
        """The n most common words of the human captions."""
        size = sum(not is_special(word) for word in self.captioner_words(corpus))
        human = corpus.human
        ranked = sorted(
            (int(-human.counts[t]), human.types[t])
            for t in np.flatnonzero(human.counts)
            if not is_special(human.types[t])
        )
        return frozenset(word for _, word in ranked[:size])
