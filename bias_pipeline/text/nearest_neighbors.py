"""The nearest words of one vocabulary to those of another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.arrays import ArrayCache
from bias_pipeline.text.vectors import WordVectors, digests, word_vectors


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
    source: str, words: Sequence[str], known: Sequence[str], cache: ArrayCache | None = None
) -> Mapping[str, Near]:
    """The nearest known word of each given word, if both have vectors.

    Args:
        source: of the vectors, see :func:`~bias_pipeline.text.vectors.word_vectors`.
        words: the words.
        known: the words to choose from.
        cache: stores the result, under a key made of the contents of the source.

    Raises:
        LookupError: if no known word has a vector.
        UsageError, ResourceError, DataError: see there.
    """
    words, known = sorted(set(words)), sorted(set(known))
    key = _key(source, words, known)
    table = None if cache is None else cache.get(key)
    if table is None:
        table = _table(word_vectors(source, {*words, *known}), words, known)
        if cache is not None:
            cache.put(key, table)
    return {words[int(a)]: Near(known[int(k)], float(distance)) for a, k, distance in table}


def _key(source: str, words: Sequence[str], known: Sequence[str]) -> str:
    text = json.dumps(["nearest", digests(source), words, known])
    return hashlib.sha256(text.encode()).hexdigest()


def _table(vectors: WordVectors, words: Sequence[str], known: Sequence[str]) -> Float64Array:
    """(M, 3) rows of ``words``, rows of ``known`` and the distances between them."""
    ours = np.array([i for i, word in enumerate(known) if word in vectors.places], np.int64)
    theirs = np.array([i for i, word in enumerate(words) if word in vectors.places], np.int64)
    if not len(ours):
        raise LookupError("no known word has a vector")
    rows, distances = nearest(
        vectors.rows([words[i] for i in theirs]), vectors.rows([known[i] for i in ours])
    )
    return np.column_stack([theirs, ours[rows], distances])


Nearest = tuple[IntArray, Float64Array]


def nearest(queries: Float64Array, known: Float64Array, *, at_once: int = 4096) -> Nearest:
    """The nearest of K directions to each of V; among equals the first.

    Args:
        queries: (V, D) vectors of length 1.
        known: (K, D) vectors of length 1, K > 0.
        at_once: how many are compared at a time, which bounds memory.

    Returns:
        (V,) rows of ``known`` and (V,) cosine distances, in [0, 2].

    Example:
        >>> rows, distances = nearest(np.array([[0.6, 0.8]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
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
