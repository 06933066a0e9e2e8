"""Measures the quality of captions: BLEU and CIDEr-D from n-grams of 1 to 4 words, and METEOR.

In all functions of n-grams, ``owner`` (R,) says for each of R references to which of C candidates
it belongs. METEOR is computed by its authors' program, a Java archive inside pycocoevalcap, if
pycocoevalcap is installed.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, Int32Array, IntArray
from bias_pipeline.corpus.captions import dense_ranks, offsets
from bias_pipeline.metrics.functional.counts import share

ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class Ngrams:
    """The n-grams of C captions, for n = 1 to 4.

    Attributes:
        tables: for each n, how often each caption contains each n-gram: (C, G_n) in uint16, which
            is enough for captions of ``LONGEST`` characters. Captions can only be compared if they
            were counted together; see :func:`count_ngrams`.
        lengths: (C,) words of each caption.
    """

    tables: tuple[sparse.csr_array, ...]
    lengths: IntArray

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: IntArray) -> Ngrams:
        """The captions of the given rows."""
        return Ngrams(tuple(table[rows] for table in self.tables), self.lengths[rows])


def count_ngrams(columns: Sequence[tuple[IntArray | Int32Array, IntArray]]) -> list[Ngrams]:
    """Count the n-grams of several columns of captions, using the same list of n-grams.

    Args:
        columns: for each column its (T,) words as numbers, which mean the same in all columns, and
            (C + 1,) where its captions start and end.

    Returns:
        One item per column.

    Example:
        >>> one = np.array([0, 1, 0, 1]), np.array([0, 4])  # "a b a b"
        >>> (ngrams,) = count_ngrams([one])
        >>> [table.toarray().tolist() for table in ngrams.tables]
        [[[2, 2]], [[2, 1]], [[1, 1]], [[1]]]
    """
    words = np.concatenate([tokens for tokens, _ in columns])
    lengths = np.concatenate([np.diff(starts) for _, starts in columns])
    caption = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    last, n_types = np.cumsum(lengths), 1 + int(words.max(initial=0))
    tables, run, places = [], words, np.arange(len(words), dtype=np.int32)
    for n in ORDERS:
        if n > 1:
            fits = places + n <= last[caption[places]]
            places, run = places[fits], run[fits]
            run = run * n_types + words[places + n - 1]
        run = dense_ranks(run)
        shape = (len(lengths), int(run.max(initial=-1)) + 1)
        starts = offsets(np.maximum(lengths - n + 1, 0)).astype(np.int32)
        cells = np.ones(len(run), np.uint16), run.astype(np.int32), starts
        table = sparse.csr_array(cells, shape)
        table.sum_duplicates()  # without a table of coordinates, which would be twice as large
        tables.append(table)
    ends = np.cumsum([0, *(len(starts) - 1 for _, starts in columns)])
    whole = Ngrams(tuple(tables), lengths.astype(np.int64))
    if len(columns) == 1:
        return [whole]
    return [whole.take(np.arange(a, b)) for a, b in pairwise(ends)]


def document_frequencies(
    captions: Ngrams, documents: IntArray, left_out: Sequence[BoolArray] = ()
) -> list[list[Int32Array]]:
    """The number of documents with each n-gram, in all captions and with captions left out.

    Args:
        captions: R captions.
        documents: (R,) the document (image) that each belongs to.
        left_out: any number of (R,) masks; each marks captions that are left out in turn.

    Returns:
        For all captions, then for each mask: (G_n,) for each n.

    Example:
        >>> texts = np.array([0, 1, 0, 0]), np.array([0, 2, 3, 4])  # "a b", "a", "a"
        >>> (ngrams,) = count_ngrams([texts])
        >>> first = np.array([True, False, False])
        >>> whole, rest = document_frequencies(ngrams, np.array([0, 0, 1]), [first])
        >>> whole[0].tolist(), rest[0].tolist()
        ([2, 1], [2, 0])
    """
    known, document = np.unique(documents, return_inverse=True)
    shape = len(known), len(documents)
    gathers = [  # the captions of each document
        sparse.csr_array((np.ones(len(rows), np.uint16), (document[rows], rows)), shape=shape)
        for rows in (np.arange(len(documents)), *map(np.flatnonzero, left_out))
    ]
    counts: list[list[Int32Array]] = [[] for _ in gathers]
    for table in captions.tables:
        indicators = (np.ones_like(table.data), table.indices, table.indptr)
        contains = sparse.csr_array(indicators, table.shape)
        # How many captions of each document contain an n-gram; a difference stores no zero.
        whole, *parts = (gather @ contains for gather in gathers)
        for count, left in zip(counts, (whole, *(whole - part for part in parts)), strict=True):
            count.append(np.bincount(left.indices, minlength=table.shape[1]).astype(np.int32))
    return counts


SIGMA = 6.0
CIDER_SCALE = 10.0


def bleu(
    matches: Float64Array, totals: Float64Array, length: Float64Array, reference: Float64Array
) -> Float64Array:
    """(..., 4): BLEU-1 to BLEU-4 of a whole set of captions, in [0, 1].

    BLEU-n is the geometric mean of n-gram precisions up to order n. The mean is multiplied by exp(1
    - r / c) if captions are shorter than references. There is no smoothing. The result is 0 if no
    n-gram of some order matches, and NaN if captions have no n-gram of some order.

    Args:
        matches: (..., 4) clipped matches of each order, summed over captions.
        totals: (..., 4) n-grams of the captions of each order.
        length: (...) words of the captions, c.
        reference: (...) words of the reference closest in length, r.

    Source: Papineni et al. 2002, sections 2.1 to 2.3.

    Example:
        >>> bleu(np.array([3., 2., 1., 0.]), np.array([4., 3., 2., 1.]), np.array(4.),
        ...      np.array(4.)).round(3).tolist()
        [0.75, 0.707, 0.63, 0.0]
    """
    precision = share(matches, totals)
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.log(precision), axis=-1) / np.array(ORDERS)
    brevity = np.minimum(0.0, 1.0 - share(reference, length))
    scores: Float64Array = np.exp(logs + brevity[..., None])
    return scores


def clipped_counts(
    candidates: Ngrams, references: Ngrams, owner: IntArray
) -> tuple[sparse.csr_array, ...]:
    """The n-grams that each reference shares with its candidate, with the smaller count.

    Args:
        candidates: C captions.
        references: R captions, counted together with the candidates.
        owner: see the module.

    Returns:
        (R, G_n) for each n, which :func:`clipped_matches` and :func:`cider_d` take.

    Example:
        >>> from bias_pipeline.metrics.functional.quality import count_ngrams
        >>> the = np.zeros(3, np.int64), np.array([0, 3])  # "the the the"
        >>> cat = np.array([0, 1, 0]), np.array([0, 2, 3])  # "the cat", "the"
        >>> one, two = count_ngrams([the, cat])
        >>> clipped_counts(one, two, np.array([0, 0]))[0].toarray().tolist()
        [[1, 0], [1, 0]]
    """
    pairs = zip(candidates.tables, references.tables, strict=True)
    return tuple(table[owner].minimum(reference) for table, reference in pairs)


def clipped_matches(
    clipped: Sequence[sparse.csr_array], owner: IntArray, n_candidates: int
) -> Float64Array:
    """(C, 4): n-grams that each candidate shares with references, clipped to references' counts.

    Args:
        clipped: see :func:`clipped_counts`.
        owner: see the module.
        n_candidates: C.

    Source: Papineni et al. 2002, section 2.1 (modified n-gram precision).

    Example:
        >>> from bias_pipeline.metrics.functional.quality import clipped_counts, count_ngrams
        >>> the = np.zeros(3, np.int64), np.array([0, 3])  # "the the the"
        >>> cat = np.array([0, 1, 0]), np.array([0, 2, 3])  # "the cat", "the"
        >>> one, two = count_ngrams([the, cat])
        >>> owner = np.array([0, 0])
        >>> clipped_matches(clipped_counts(one, two, owner), owner, 1).tolist()
        [[1.0, 0.0, 0.0, 0.0]]
    """
    most = (_largest_counts(counts, owner) for counts in clipped)
    matches = [np.bincount(rows, data, minlength=n_candidates) for rows, data in most]
    return np.stack(matches, axis=-1)


def closest_lengths(lengths: IntArray, references: IntArray, owner: IntArray) -> IntArray:
    """(C,): the reference length closest to each candidate's length; the shorter if two are.

    Args:
        lengths: (C,) words of each candidate; each must have a reference.
        references: (R,) words of each reference.
        owner: see the module.

    Example:
        >>> closest_lengths(np.array([5]), np.array([3, 7, 6]), np.array([0, 0, 0])).tolist()
        [6]
    """
    order = np.lexsort((references, np.abs(references - lengths[owner]), owner))
    _, first = np.unique(owner[order], return_index=True)
    closest: IntArray = references[order][first]
    return closest


def cider_d(
    candidates: Ngrams,
    references: Ngrams,
    owner: IntArray,
    clipped: Sequence[sparse.csr_array],
    frequencies: Sequence[Int32Array],
    n_documents: int,
    sigma: float = SIGMA,
) -> Float64Array:
    """(C,): the CIDEr-D of each candidate, in [0, 10], which is its mean similarity to references.

    Similarity is a cosine of n-gram counts, times exp(-(difference in length)^2 / (2 sigma^2)). The
    mean over n = 1 to 4 is multiplied by 10. Counts are weighted by log(documents / document
    frequency). Each count of the candidate is clipped to the reference's count. As in the authors'
    tool, counts are not divided by the caption's length, and an n-gram that occurs in no document
    has the same weight as one that occurs in a single document.

    Args:
        candidates: C captions; each must have a reference.
        references: R captions, counted together with the candidates.
        owner: see the module.
        clipped: see :func:`clipped_counts`.
        frequencies: (G_n,) for each n in how many documents an n-gram occurs.
        n_documents: how many documents there are.
        sigma: width of the penalty on length, in words.

    Source: Vedantam, Zitnick, Parikh 2015, section 5 (CIDEr-D).

    Example:
        >>> from bias_pipeline.metrics.functional import quality
        >>> words = np.array([0, 1, 2, 3, 0, 4]), np.array([0, 4, 6])  # two captions
        >>> (captions,) = quality.count_ngrams([words])
        >>> documents = np.arange(2)  # each compared with itself
        >>> (frequencies,) = quality.document_frequencies(captions, documents)
        >>> clipped = quality.clipped_counts(captions, captions, documents)
        >>> cider_d(captions, captions, documents, clipped, frequencies, 2).round(6).tolist()
        [10.0, 5.0]
    """
    likeness = np.zeros(len(references))
    tables = zip(candidates.tables, references.tables, clipped, frequencies, strict=True)
    for counts, other, shared, frequency in tables:
        weights = np.log(n_documents / np.maximum(frequency, 1.0)) ** 2
        overlap = shared.astype(np.float64).multiply(other) @ weights
        norms = _norms(counts, weights)[owner] * _norms(other, weights)
        likeness += np.divide(overlap, norms, out=np.zeros(len(norms)), where=norms > 0)
    apart = candidates.lengths[owner] - references.lengths
    likeness *= CIDER_SCALE / len(ORDERS) * np.exp(-(apart**2) / (2 * sigma**2))
    n_candidates = len(candidates)
    total, count = (
        np.bincount(owner, each, minlength=n_candidates).astype(np.float64)
        for each in (likeness, np.ones(len(owner)))
    )
    return share(total, count)


def _norms(counts: sparse.csr_array, weights: Float64Array) -> Float64Array:
    """(C,): the length of each caption's vector of weighted counts."""
    squares = sparse.csr_array(
        (counts.data.astype(np.float64) ** 2, counts.indices, counts.indptr), counts.shape
    )
    return np.sqrt(np.asarray(squares @ weights))


def _largest_counts(counts: sparse.csr_array, owner: IntArray) -> tuple[IntArray, Float64Array]:
    """For each n-gram of a candidate, the largest count in a reference, and the candidate.

    ``counts`` (R, G) has, for each reference, the clipped counts of the candidate's n-grams.
    """
    rows = np.repeat(owner, np.diff(counts.indptr))
    order = np.lexsort((counts.data, counts.indices, rows))
    rows, columns, data = rows[order], counts.indices[order], counts.data[order]
    last = np.ones(len(rows), bool)
    last[:-1] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    return rows[last], data[last]


METEOR_ABSENT = (
    "METEOR was not computed: it needs Java and the package pycocoevalcap "
    "(pip install 'bias_pipeline[quality]')"
)


def has_meteor() -> bool:
    """Whether Java and METEOR's program are installed."""
    return bool(shutil.which("java") and find_spec("pycocoevalcap"))


def meteor(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Float64Array:
    """(C,): METEOR 1.5 of each candidate and its references, in [0, 1]; NaN without Java.

    About 60 captions are scored per second. Published tables have one value for all captions
    together, which differs a little from the mean over captions.

    Args:
        candidates: C captions, words joined by blanks.
        references: one caption or more for each candidate.

    Source: Denkowski and Lavie 2014, by their program.
    """
    if not has_meteor() or not candidates:
        return np.full(len(candidates), math.nan)
    from pycocoevalcap.meteor.meteor import Meteor

    program = Meteor()
    with program.meteor_p:  # closes the program's pipes and waits until it ends
        try:
            texts = {i: [text] for i, text in enumerate(candidates)}
            _, scores = program.compute_score({i: list(r) for i, r in enumerate(references)}, texts)
        finally:
            program.meteor_p.kill()
    return np.asarray(scores, np.float64)
