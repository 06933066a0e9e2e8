"""How well captions describe: BLEU and CIDEr-D, as functions of counted n-grams.

In all functions ``owner`` says which candidate each of the R references belongs to: (R,) row
numbers of the C candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.ngrams import ORDERS, Ngrams

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

SIGMA = 6.0
CIDER_SCALE = 10.0


def bleu(
    matches: FloatArray, totals: FloatArray, length: FloatArray, reference: FloatArray
) -> FloatArray:
    """(..., 4) BLEU-1 to BLEU-4 of a whole set of captions, in [0, 1].

    The geometric mean of the precisions of n-grams up to n, times exp(1 - r / c) where captions
    are shorter than references. Without smoothing: 0 where no n-gram of some order matches; NaN
    where there is none of that order.

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
    scores: FloatArray = np.exp(logs + brevity[..., None])
    return scores


def clipped_matches(candidates: Ngrams, references: Ngrams, owner: IntArray) -> FloatArray:
    """(C, 4) n-grams of each candidate that its references hold, none more often than one of them.

    Args:
        candidates: C captions.
        references: R captions, counted together with the candidates.
        owner: see the module.

    Source: Papineni et al. 2002, section 2.1 (modified n-gram precision).

    Example:
        >>> from bias_pipeline.metrics.functional.ngrams import count_ngrams
        >>> the = np.zeros(3, np.int64), np.array([0, 3])  # "the the the"
        >>> cat = np.array([0, 1, 0]), np.array([0, 2, 3])  # "the cat", "the"
        >>> one, two = count_ngrams([the, cat])
        >>> clipped_matches(one, two, np.array([0, 0])).tolist()
        [[1.0, 0.0, 0.0, 0.0]]
    """
    found = [
        np.bincount(*_most(own[owner].minimum(table), owner), minlength=len(candidates))
        for own, table in zip(candidates.tables, references.tables, strict=True)
    ]
    return np.stack(found, axis=-1)


def closest_lengths(lengths: IntArray, references: IntArray, owner: IntArray) -> IntArray:
    """(C,) length of the reference closest in length to each candidate, of two the shorter.

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
    frequencies: Sequence[FloatArray],
    n_documents: int,
    sigma: float = SIGMA,
) -> FloatArray:
    """(C,) CIDEr-D of each candidate, in [0, 10]: mean likeness to its references.

    Likeness is a cosine of n-gram counts weighted by log(documents / document frequency), each
    count of the candidate clipped to the reference's, times exp(-(difference in length)^2 /
    (2 sigma^2)); its mean over n = 1 to 4, times 10. Counts are not divided by the caption's
    length, as in the authors' tool, and an n-gram of no document weighs as one of a single one.

    Args:
        candidates: C captions; each must have a reference.
        references: R captions, counted together with the candidates.
        owner: see the module.
        frequencies: (G_n,) for each n in how many documents an n-gram stands.
        n_documents: how many documents there are.
        sigma: of the penalty on length, in words.

    Source: Vedantam, Zitnick, Parikh 2015, section 5 (CIDEr-D).

    Example:
        >>> from bias_pipeline.metrics.functional.ngrams import count_ngrams, document_frequencies
        >>> said = np.array([0, 1, 2, 3, 0, 4]), np.array([0, 4, 6])  # two captions
        >>> (captions,) = count_ngrams([said])
        >>> own = np.arange(2)  # each held against itself
        >>> seen = document_frequencies(captions, own)
        >>> cider_d(captions, captions, own, seen, n_documents=2).round(6).tolist()
        [10.0, 5.0]
    """
    likeness = np.zeros(len(references))
    for own, other, frequency in zip(
        candidates.tables, references.tables, frequencies, strict=True
    ):
        weights = np.log(n_documents / np.maximum(frequency, 1.0)) ** 2
        overlap = (own[owner].minimum(other) * other) @ weights
        norms = np.sqrt((own**2) @ weights)[owner] * np.sqrt((other**2) @ weights)
        likeness += np.divide(overlap, norms, out=np.zeros(len(norms)), where=norms > 0)
    apart = candidates.lengths[owner] - references.lengths
    likeness *= CIDER_SCALE / len(ORDERS) * np.exp(-(apart**2) / (2 * sigma**2))
    n_candidates = len(candidates)
    total, count = (
        np.bincount(owner, each, minlength=n_candidates).astype(np.float64)
        for each in (likeness, np.ones(len(owner)))
    )
    return share(total, count)


def _most(held: sparse.csr_array, owner: IntArray) -> tuple[IntArray, FloatArray]:
    """Candidate and count of each of its n-grams, by the reference that holds most of it.

    Args:
        held: (R, G) how much of its candidate each reference holds.
        owner: see the module.
    """
    rows = np.repeat(owner, np.diff(held.indptr))
    order = np.lexsort((held.data, held.indices, rows))
    rows, columns, data = rows[order], held.indices[order], held.data[order]
    last = np.ones(len(rows), bool)
    last[:-1] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    return rows[last], data[last]
