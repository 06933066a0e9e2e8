"""Contextual alignment replaces human words by the nearest words that the captioner uses."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Side
from bias_pipeline.declared import Range
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.arrays import ArrayCache
from bias_pipeline.language.vectors import GLOVE_NAME, digests, word_vectors
from bias_pipeline.text.align import ConstantAlignment, Vocabulary
from bias_pipeline.text.transform import TextTransform, is_special


class Neighbour(NamedTuple):
    word: str  # the nearest word
    distance: float  # cosine distance, in [0, 2]


NOWHERE = Neighbour("", float("nan"))


def nearest_words(
    source: str, words: Sequence[str], known: Sequence[str], cache: ArrayCache | None = None
) -> Mapping[str, Neighbour]:
    """The nearest known word of each given word, if both have vectors."""
    words, known = sorted(set(words)), sorted(set(known))
    text = json.dumps(["nearest", digests(source), words, known])
    key = hashlib.sha256(text.encode()).hexdigest()
    table = None if cache is None else cache.get(key)
    if table is None:
        vectors = word_vectors(source, {*words, *known})
        ours = np.array([i for i, word in enumerate(known) if word in vectors.places], np.int64)
        theirs = np.array([i for i, word in enumerate(words) if word in vectors.places], np.int64)
        if not len(ours):
            raise LookupError("no known word has a vector")
        rows, distances = nearest_directions(
            vectors.rows([words[i] for i in theirs]), vectors.rows([known[i] for i in ours])
        )
        table = np.column_stack([theirs, ours[rows], distances])
        if cache is not None:
            cache.put(key, table)
    return {words[int(a)]: Neighbour(known[int(k)], float(distance)) for a, k, distance in table}


Nearest = tuple[IntArray, Float64Array]


def nearest_directions(
    queries: Float64Array, known: Float64Array, *, at_once: int = 4096
) -> Nearest:
    """(V,) the nearest of K directions for each vector (the first of equals), and (V,) distances.

    Vectors are of length 1; a distance is 1 minus the cosine, in [0, 2].

    Example:
        >>> known = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> rows, distances = nearest_directions(np.array([[0.6, 0.8]]), known)
        >>> rows.tolist(), distances.round(3).tolist()
        ([1], [0.2])
    """
    rows = np.zeros(len(queries), np.int64)
    cosines = np.zeros(len(queries))
    for start in range(0, len(queries), at_once):
        part = slice(start, start + at_once)
        similarities = queries[part] @ known.T
        rows[part] = similarities.argmax(axis=1)
        cosines[part] = similarities.max(axis=1)
    return rows, np.clip(1 - cosines, 0, 2)


SUBSTITUTIONS = "substitutions"  # the table's name
ENOUGH = 0.6  # share of contextual substitutions, by running words, for which auto chooses delta
_FEW = 0.5  # share of the words to be replaced that may lack a vector without a warning
Distance = Annotated[float, Range(above=0, high=2)]


@dataclass(frozen=True)
class Substitution:
    side: str  # the side whose captions have the word
    word: str  # the word
    replacement: str  # its replacement
    # Cosine distance to the nearest word of the captioner, in [0, 2]; NaN if the word has no vector
    distance: float
    count: int  # how often the word occurs on this side
    near: bool  # whether the replacement is a word of the captioner


class ContextualAlignment(ConstantAlignment):
    """``alignment=contextual`` replaces an unknown word by the nearest known word (DBAC eq. 9).

    A word outside the captioner's vocabulary becomes the word of that vocabulary with the smallest
    cosine distance, if this distance is below ``delta``. Otherwise, or if the word has no vector,
    the word becomes ``replacement``. Special tokens of earlier transforms stay and replace nothing.
    Punctuation has no near word (ours), since by its vector a full stop would become "it". The run
    has a table of the replacements, ``substitutions.csv``.

    With several sets of vectors, scores are averaged over the sets. Their spread is a third source
    of error (the paper recommends "multiple word embedding models"). The paper's ``delta`` of 0.4
    was chosen for GloVe and does not carry over to other vectors. ``auto`` is the smallest delta at
    which 60 % of the running words to replace have a near word (the paper's appendix A). Each
    captioner and each side has its own delta, and a note gives its value.
    """

    def __init__(
        self,
        vectors: str | Sequence[str] = GLOVE_NAME,
        delta: Literal["auto"] | Distance = 0.4,
        vocabulary: Vocabulary = "captions",
        replacement: Sequence[str] = ("<unk>",),
        sides: Sequence[Side] = ("human",),
        keep: Sequence[str] = (),
        cache: str | None = None,
    ) -> None:
        super().__init__(vocabulary, replacement, sides, keep)
        self.sources = _sources(vectors)
        self.delta = delta
        self.cache = None if cache is None else ArrayCache(cache)

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        vectors = settings["vectors"]
        if isinstance(vectors, str):
            return {"vectors": digests(vectors)}
        return {"vectors": [digests(source) for source in _sources(vectors)]}

    @property
    def vectors(self) -> str:
        """The only set of vectors; several sets are refused."""
        if len(self.sources) > 1:
            raise UsageError(
                f"alignment.vectors={[*self.sources]}: only scores are averaged over several sets "
                "of vectors; name one set here"
            )
        return self.sources[0]

    @property
    def alternatives(self) -> Mapping[str, TextTransform]:
        """One alignment for each set of vectors, by name."""
        if len(self.sources) == 1:
            return super().alternatives
        names = [Path(source).name.partition(".")[0] for source in self.sources]
        keys = names if len(set(names)) == len(names) else self.sources
        return {
            name: self._with_source(source) for name, source in zip(keys, self.sources, strict=True)
        }

    def _with_source(self, source: str) -> ContextualAlignment:
        variant = copy(self)
        variant.sources = (source,)
        return variant

    def __call__(self, corpus: Corpus) -> Corpus:
        """The corpus with aligned sides, and a table of the words that were replaced."""
        by_side = {side: self.substitutions(corpus, side) for side in self.sides}
        aligned = corpus.rewrite(
            {
                s: self._substitute(corpus.side(s), substitutions)
                for s, substitutions in by_side.items()
            }
        )
        lines = [asdict(one) for substitutions in by_side.values() for one in substitutions]
        notes = [note for substitutions in by_side.values() for note in self._notes(substitutions)]
        return replace(
            aligned,
            notes=(*corpus.notes, *notes),
            tables={**corpus.tables, SUBSTITUTIONS: lines},
        )

    def substitutions(self, corpus: Corpus, side: str) -> list[Substitution]:
        """The replacement of every unknown word of one side, the most frequent first."""
        captions = corpus.side(side).compact()
        counts = dict(zip(captions.types, captions.counts.tolist(), strict=True))
        unknown = [word for word in self.unknown_words(corpus, side) if word in counts]
        near = self._nearest_known_words(corpus, unknown)
        words = [*filter(is_word, unknown)]
        delta = self._delta(
            np.array([near.get(word, NOWHERE).distance for word in words]),
            np.array([counts[word] for word in words]),
        )
        substitutions = [
            self._substitution(side, word, near.get(word, NOWHERE), counts[word], delta)
            for word in unknown
        ]
        return sorted(substitutions, key=lambda one: (-one.count, one.word))

    def _delta(self, distances: Float64Array, counts: IntArray) -> float:
        """The limit of distances; ``auto`` sets it just above the largest accepted distance.

        ``auto`` gives a limit just above the largest accepted one.
        """
        if self.delta != "auto":
            return self.delta
        far = distance_of(ENOUGH, distances, counts)
        if math.isinf(far):
            raise DataError(
                f"alignment.delta=auto needs vectors of {ENOUGH:.0%} of the {counts.sum():,} words "
                f"to be replaced, but {self.vectors} has fewer; set alignment.delta to a distance"
            )
        return float(np.nextafter(far, math.inf))

    def _substitution(
        self, side: str, word: str, near: Neighbour, count: int, delta: float
    ) -> Substitution:
        close = near.distance < delta  # NaN is not
        replacement = near.word if close else " ".join(self.replacement)
        return Substitution(side, word, replacement, near.distance, count, close)

    def _nearest_known_words(
        self, corpus: Corpus, unknown: Sequence[str]
    ) -> Mapping[str, Neighbour]:
        """The nearest known word of each unknown word, if both have vectors."""
        known = [*filter(is_word, self.known_words(corpus))]
        try:
            return nearest_words(self.vectors, [*filter(is_word, unknown)], known, self.cache)
        except LookupError:
            lacking = (
                f"none of its {len(known)} words has a vector in {self.vectors}, so words of human "
                "captions cannot be replaced; choose other vectors (alignment.vectors)"
                if known
                else "its captions contain no word once masked; there is nothing to align with"
            )
            raise DataError(lacking) from None

    def _substitute(self, captions: Captions, substitutions: Sequence[Substitution]) -> Captions:
        """Captions in which every listed word is replaced."""
        new = {
            one.word: (one.replacement,) if one.near else self.replacement for one in substitutions
        }
        return captions.rewrite(lambda word: new.get(word, (word,)))

    def _notes(self, substitutions: Sequence[Substitution]) -> Iterator[str]:
        """Notes on the chosen distance, with a warning if too few of the words have vectors."""
        near = [one.distance for one in substitutions if one.near]
        if self.delta == "auto" and near:
            yield f"alignment: delta=auto is a distance of {max(near):.3f}"
        running = sum(one.count for one in substitutions if is_word(one.word))
        without = sum(
            one.count for one in substitutions if is_word(one.word) and math.isnan(one.distance)
        )
        if without > _FEW * running:
            yield (
                f"alignment: {without / running:.0%} of the {running:,} words to be replaced have "
                f"no vector in {self.vectors}; is it of another language?"
            )


def _sources(vectors: str | Sequence[str]) -> tuple[str, ...]:
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


def distance_of(share: float, distances: Float64Array, counts: IntArray) -> float:
    """The smallest distance within which at least ``share`` of the counts lie; NaN lies nowhere.

    Example:
        >>> distance_of(0.6, np.array([0.3, 0.1, np.nan]), np.array([2, 2, 1]))
        0.3
    """
    if not len(distances):
        return 0.0
    order = np.argsort(distances, kind="stable")  # NaN last
    within = np.cumsum(counts[order]) >= share * counts.sum()
    far = float(distances[order][np.argmax(within)])
    return math.inf if math.isnan(far) else far
