"""Alignment limits human captions to a vocabulary, so that rare words reveal nothing.

Annotators use far more words than captioners. So LIC replaces the words of annotators that the
captioner does not use (Hirota et al. 2022, section 4.1). RELIC has another rule (appendix C).
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
    """Replaces every word outside a vocabulary, except special tokens.

    Args:
        vocabulary: ``captions``: the words of all the captioner's captions, in the form in which
            they reach this transform (masked, if masking comes first). Captions of images that are
            not scored also count, so captions of unsure images can change human scores. The
            vocabulary is the same for every attribute (DBAC section 4.2; published LIC lists are
            also used for gender, race and age). ``published``: the list that came with the
            captioner. The published LIC lists were made after masking gender, so they contain no
            gender words. If race or age is audited with these lists, gender words disappear only
            from human captions. The default avoids this.
        replacement: the tokens that replace an unknown word. The published LSTM protocol has three:
            ``["<", "unk", ">"]``.
        sides: which captions are aligned. If ``vocabulary`` is ``captions``, aligning ``model``
            changes nothing.
        keep: words that are kept although they are in no vocabulary. LIC never aligns masked words,
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
        """The words that are kept."""

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

    Here n is the size of the captioner's vocabulary, without special tokens. Among equally common
    words, the first in the alphabet are kept.
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
