"""The nearest words of one vocabulary to those of another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.io.arrays import ArrayCache
from bias_pipeline.text.vectors import WordVectors, digests, word_vectors

FloatArray = npt.NDArray[np.float64]


class Near(NamedTuple):
    """A word and how far it is.

    Attributes:
        word: the nearest word.
        distance: cosine distance, in [0, 2].
    """

    word: str
    distance: float


NOWHERE = Near("", float("nan"))


def nearest_words(
    source: str, asked: Sequence[str], known: Sequence[str], cache: ArrayCache | None = None
) -> Mapping[str, Near]:
    """The nearest known word of every asked one, as far as they have vectors.

    Args:
        source: of the vectors, see :func:`~bias_pipeline.text.vectors.word_vectors`.
        asked: words that a near one is looked for.
        known: words that may be found.
        cache: where what was found is kept, by the contents of the source.

    Raises:
        LookupError: if no known word has a vector.
        UsageError, ResourceError, DataError: see there.
    """
    asked, known = sorted(set(asked)), sorted(set(known))
    key = _key(source, asked, known)
    table = None if cache is None else cache.get(key)
    if table is None:
        table = _table(word_vectors(source, {*asked, *known}), asked, known)
        if cache is not None:
            cache.put(key, table)
    return {asked[int(a)]: Near(known[int(k)], float(distance)) for a, k, distance in table}


def _key(source: str, asked: Sequence[str], known: Sequence[str]) -> str:
    told = json.dumps(["nearest", digests(source), asked, known])
    return hashlib.sha256(told.encode()).hexdigest()


def _table(vectors: WordVectors, asked: Sequence[str], known: Sequence[str]) -> FloatArray:
    """(M, 3) rows of ``asked``, rows of ``known`` and the distances between them."""
    ours = np.array([i for i, word in enumerate(known) if word in vectors.places], np.int64)
    theirs = np.array([i for i, word in enumerate(asked) if word in vectors.places], np.int64)
    if not len(ours):
        raise LookupError("no known word has a vector")
    rows, distances = nearest(
        vectors.rows([asked[i] for i in theirs]), vectors.rows([known[i] for i in ours])
    )
    return np.column_stack([theirs, ours[rows], distances])


Nearest = tuple[npt.NDArray[np.int64], FloatArray]


def nearest(asked: FloatArray, known: FloatArray, *, at_once: int = 4096) -> Nearest:
    """The nearest of K directions to each of V; of equal ones the first.

    Args:
        asked: (V, D) vectors of length 1.
        known: (K, D) vectors of length 1, K > 0.
        at_once: how many are compared at a time, which bounds memory.

    Returns:
        (V,) rows of ``known`` and (V,) cosine distances, in [0, 2].

    Example:
        >>> rows, distances = nearest(np.array([[0.6, 0.8]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
        >>> rows.tolist(), distances.round(3).tolist()
        ([1], [0.2])
    """
    rows = np.zeros(len(asked), np.int64)
    cosines = np.zeros(len(asked))
    for start in range(0, len(asked), at_once):
        part = slice(start, start + at_once)
        found = asked[part] @ known.T
        rows[part] = found.argmax(axis=1)
        cosines[part] = found.max(axis=1)
    return rows, np.clip(1 - cosines, 0, 2)
