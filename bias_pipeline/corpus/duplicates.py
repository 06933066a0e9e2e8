"""Images that are copies of one another: an attacker must not learn from one and be tested on it.

Two images are copies if people wrote the same captions for them, two different ones at least, or if
their pictures are the same files. One caption in common is not enough: many pictures of a surfer
get the same five words. Captions that more than ten images share do not count either: they are set
phrases, as in data made from a few templates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus

_FEWEST_TEXTS = 2
_MOST_IMAGES = 10


def originals(corpus: Corpus) -> IntArray:
    """The first image that each one is a copy of.

    Args:
        corpus: raw captions.

    Returns:
        (N,) rows of the corpus, read-only; an image that is no copy stands for itself.
    """
    return corpus.read(_originals)


def _originals(corpus: Corpus) -> IntArray:
    pairs = [
        (copies[0], row)
        for copies in (
            *_same_captions(corpus.human),
            *(corpus.pictures.copies() if corpus.pictures else ()),
        )
        for row in copies[1:]
    ]
    one, two = np.array(pairs, np.int64).reshape(-1, 2).T
    shape = (len(corpus), len(corpus))
    graph = sparse.csr_array((np.ones(len(pairs)), (one, two)), shape=shape)
    _, member = sparse.csgraph.connected_components(graph, directed=False)
    _, first = np.unique(member, return_index=True)
    original_rows: IntArray = first[member]
    original_rows.setflags(write=False)  # all callers get the same array
    return original_rows


def _same_captions(captions: Captions) -> Iterator[IntArray]:
    """Rows of images with the same captions in any order, each set of two images or more."""
    images, starts, counts = np.unique(captions.image_rows, return_index=True, return_counts=True)
    for count in np.unique(counts[counts >= _FEWEST_TEXTS]):
        chosen = counts == count
        texts = np.sort(captions.identities[starts[chosen][:, None] + np.arange(count)], axis=1)
        several = 1 + (np.diff(texts, axis=1) > 0).sum(axis=1) >= _FEWEST_TEXTS
        sets = _alike(images[chosen][several], texts[several])
        yield from (rows for rows in sets if len(rows) <= _MOST_IMAGES)


def _alike(rows: IntArray, keys: IntArray) -> Iterator[IntArray]:
    """Those of (M,) rows whose (M, C) keys are equal, in sets of two or more."""
    _, which, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(which.ravel(), kind="stable")
    for alike in np.split(rows[order], np.cumsum(counts)[:-1]):
        if len(alike) > 1:
            yield alike
