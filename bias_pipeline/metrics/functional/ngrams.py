"""N-grams of one to four words, counted for each caption, for BLEU and CIDEr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray

ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class Ngrams:
    """The n-grams of C captions, for n = 1 to 4.

    Attributes:
        tables: for each n how often each caption contains each n-gram, (C, G_n). Captions can only
            be compared if they were counted together, see :func:`count_ngrams`.
        lengths: (C,) words of each caption.
    """

    tables: tuple[sparse.csr_array, ...]
    lengths: IntArray

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: IntArray) -> Ngrams:
        """The captions of the given rows."""
        return Ngrams(tuple(table[rows] for table in self.tables), self.lengths[rows])


def count_ngrams(columns: Sequence[tuple[IntArray, IntArray]]) -> list[Ngrams]:
    """Count the n-grams of several columns of captions, with one common list of n-grams.

    Args:
        columns: for each its words as numbers, (T,), the same numbers in all columns, and where
            its captions start and end, (C + 1,).

    Returns:
        One item a column.

    Example:
        >>> one = np.array([0, 1, 0, 1]), np.array([0, 4])  # "a b a b"
        >>> (ngrams,) = count_ngrams([one])
        >>> [table.toarray().tolist() for table in ngrams.tables]
        [[[2.0, 2.0]], [[2.0, 1.0]], [[1.0, 1.0]], [[1.0]]]
    """
    words = np.concatenate([tokens for tokens, _ in columns])
    lengths = np.concatenate([np.diff(starts) for _, starts in columns])
    caption = np.repeat(np.arange(len(lengths)), lengths)
    remaining = np.repeat(np.cumsum(lengths), lengths) - np.arange(
        len(words)
    )  # words up to the end
    tables, run = [], words
    for n in ORDERS:
        places = np.flatnonzero(remaining >= n)
        if n > 1:
            run[places] = run[places] * (1 + words.max(initial=0)) + words[places + n - 1]
        known, number = np.unique(run[places], return_inverse=True)
        shape = (len(lengths), len(known))
        counts = sparse.coo_array((np.ones(len(places)), (caption[places], number)), shape)
        tables.append(counts.tocsr())
        run = np.zeros(len(words), np.int64)
        run[places] = number
    ends = np.cumsum([0, *(len(starts) - 1 for _, starts in columns)])
    whole = Ngrams(tuple(tables), lengths.astype(np.int64))
    return [whole.take(np.arange(a, b)) for a, b in pairwise(ends)]


def document_frequencies(captions: Ngrams, documents: IntArray) -> list[Float64Array]:
    """In how many documents each n-gram occurs.

    Args:
        captions: R captions.
        documents: (R,) the document (image) that each belongs to.

    Returns:
        (G_n,) for each n.

    Example:
        >>> texts = np.array([0, 1, 0, 0]), np.array([0, 2, 3, 4])  # "a b", "a", "a"
        >>> (ngrams,) = count_ngrams([texts])
        >>> document_frequencies(ngrams, np.array([0, 0, 1]))[0].tolist()
        [2.0, 1.0]
    """
    known, document = np.unique(documents, return_inverse=True)
    places = (np.ones(len(documents)), (document, np.arange(len(documents))))
    gather = sparse.csr_array(places, shape=(len(known), len(documents)))
    return [  # a row of the product has an n-gram once, however often the document contains it
        np.bincount((gather @ table).indices, minlength=table.shape[1]).astype(np.float64)
        for table in captions.tables
    ]
