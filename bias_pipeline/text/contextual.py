"""Contextual alignment: human words become the nearest words that the captioner uses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import Range
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.arrays import ArrayCache
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.nearest_neighbors import NOWHERE, Near, nearest_words
from bias_pipeline.text.transform import TextTransform, is_special
from bias_pipeline.text.vectors import GLOVE_NAME, digests

SUBSTITUTIONS = "substitutions"  # the table's name
_FEW = 0.5  # share of the words to be replaced that may lack a vector without a warning
Distance = Annotated[float, Range(above=0, high=2)]


@dataclass(frozen=True)
class Substitution:
    """How a word was replaced.

    Attributes:
        side: whose captions it is in.
        word: the word.
        replacement: its replacement.
        distance: cosine distance to the nearest word of the captioner, in [0, 2]; NaN if the word
            has no vector.
        count: how often it occurs there.
        near: whether the replacement is a word of the captioner.
    """

    side: str
    word: str
    replacement: str
    distance: float
    count: int
    near: bool


class ContextualAlignment(ConstantAlignment):
    """``alignment=contextual``: replace unknown words by the nearest known one (DBAC eq. 9).

    A word outside the captioner's vocabulary becomes the word of that vocabulary with the smallest
    cosine distance, if that is below ``delta``; otherwise, or without a vector, it becomes
    ``replacement``. Special tokens of earlier transforms stay and replace nothing. Punctuation has
    no near word (ours; by its vector a full stop would become "it"). The replacements become a
    table of the corpus, ``substitutions.csv`` of the run.

    Args:
        vectors: where the word vectors are, see :func:`~bias_pipeline.text.vectors.word_vectors`.
            With several, scores are averaged over them, and their spread is a third source of error
            (the paper recommends "multiple word embedding models").
        delta: the upper limit of a replacement's cosine distance. The paper's 0.4 was chosen
            for GloVe and does not carry over to other vectors.
        vocabulary: see :class:`~bias_pipeline.text.align.VocabularyAlignment`.
        replacement: the tokens put in place of a word without a near one.
        sides: which captions are aligned.
        keep: words that stay although they are in no vocabulary.
        cache: folder that caches nearest words, None for no cache.

    Raises:
        UsageError: on an unknown ``vocabulary`` or side, a ``delta`` out of range, or no vectors,
            or the same named twice.
    """

    def __init__(
        self,
        vectors: str | Sequence[str] = GLOVE_NAME,
        delta: Distance = 0.4,
        vocabulary: str = "captions",
        replacement: Sequence[str] = ("<unk>",),
        sides: Sequence[str] = ("human",),
        keep: Sequence[str] = (),
        cache: str | None = None,
    ) -> None:
        super().__init__(vocabulary, replacement, sides, keep)
        if not 0 < delta <= 2:
            raise UsageError(f"alignment.delta={delta}: a cosine distance is above 0 and at most 2")
        self.sources = _sources(vectors)
        self.delta = delta
        self.cache = None if cache is None else ArrayCache(cache)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """The vectors' files."""
        vectors = settings["vectors"]
        if isinstance(vectors, str):
            return {"vectors": digests(vectors)}
        return {"vectors": [digests(source) for source in _sources(vectors)]}

    @property
    def vectors(self) -> str:
        """Where the one set of vectors is.

        Raises:
            UsageError: if there are several.
        """
        if len(self.sources) > 1:
            raise UsageError(
                f"alignment.vectors={[*self.sources]}: only scores are averaged over several; name "
                "one here"
            )
        return self.sources[0]

    @property
    def alternatives(self) -> Mapping[str, TextTransform]:
        """One alignment for each set of vectors, by name."""
        if len(self.sources) == 1:
            return super().alternatives
        names = [Path(source).name.partition(".")[0] for source in self.sources]
        keys = names if len(set(names)) == len(names) else self.sources
        return {name: self._with(source) for name, source in zip(keys, self.sources, strict=True)}

    def _with(self, source: str) -> ContextualAlignment:
        variant = copy(self)
        variant.sources = (source,)
        return variant

    def __call__(self, corpus: Corpus) -> Corpus:
        """The corpus with its sides aligned, and a table of what was replaced.

        Raises:
            DataError: if no word of the captioner has a vector, or the vectors are broken.
            ResourceError: if the vectors are not there.
        """
        by_side = {side: self.substitutions(corpus, side) for side in self.sides}
        aligned = corpus.rewrite(
            {
                s: self._applied(corpus.side(s), substitutions)
                for s, substitutions in by_side.items()
            }
        )
        lines = [asdict(one) for substitutions in by_side.values() for one in substitutions]
        notes = [note for substitutions in by_side.values() if (note := self._note(substitutions))]
        return replace(
            aligned,
            notes=(*corpus.notes, *notes),
            tables={**corpus.tables, SUBSTITUTIONS: lines},
        )

    def substitutions(self, corpus: Corpus, side: str) -> list[Substitution]:
        """The replacement of every unknown word of one side, the most frequent first."""
        captions = corpus.side(side).compact()
        unknown = self.unknown_words(corpus, side)
        near = self._nearest(corpus, unknown)
        counts = dict(zip(captions.types, captions.counts.tolist(), strict=True))
        substitutions = [
            self._substitution(side, word, near.get(word, NOWHERE), counts.get(word, 0))
            for word in unknown
        ]
        return sorted(substitutions, key=lambda one: (-one.count, one.word))

    def _substitution(self, side: str, word: str, near: Near, count: int) -> Substitution:
        close = near.distance < self.delta  # NaN is not
        replacement = near.word if close else " ".join(self.replacement)
        return Substitution(side, word, replacement, near.distance, count, close)

    def _nearest(self, corpus: Corpus, unknown: Sequence[str]) -> Mapping[str, Near]:
        """Unknown word to the nearest known one, where both have vectors."""
        known = [*filter(is_word, self.known_words(corpus))]
        try:
            return nearest_words(self.vectors, [*filter(is_word, unknown)], known, self.cache)
        except LookupError:
            raise DataError(
                f"captioner {corpus.captioner!r}: none of its {len(known)} words has a vector in "
                f"{self.vectors}, so people's words cannot be replaced"
            ) from None

    def _applied(self, captions: Captions, substitutions: Sequence[Substitution]) -> Captions:
        """Captions with every listed word replaced."""
        new = {
            one.word: (one.replacement,) if one.near else self.replacement for one in substitutions
        }
        return captions.rewrite(lambda word: new.get(word, (word,)))

    def _note(self, substitutions: Sequence[Substitution]) -> str:
        """A warning if too few of the words have vectors, else empty."""
        running = sum(one.count for one in substitutions if is_word(one.word))
        without = sum(
            one.count for one in substitutions if is_word(one.word) and math.isnan(one.distance)
        )
        if without <= _FEW * running:
            return ""
        return (
            f"alignment: {without / running:.0%} of the {running:,} words to be replaced have no "
            f"vector in {self.vectors}; is it of another language?"
        )


def _sources(vectors: str | Sequence[str]) -> tuple[str, ...]:
    """The sets of vectors.

    Raises:
        UsageError: if there are none, or one is named twice.
    """
    named = (vectors,) if isinstance(vectors, str) else tuple(vectors)
    if not named or len(set(named)) < len(named):
        raise UsageError(f"alignment.vectors={[*named]}: name one or more, each once")
    return named


def is_word(token: str) -> bool:
    """Whether a token is a word: neither a special token nor punctuation.

    Example:
        >>> [is_word(token) for token in ("dog", "2", ".", "<unk>")]
        [True, True, False, False]
    """
    return not is_special(token) and any(map(str.isalnum, token))
