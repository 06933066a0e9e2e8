"""``debias=subspace``: vectors without the directions in which groups differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bias_pipeline.debias.base import Debias, Examples, FloatArray, IntArray
from bias_pipeline.debias.projection import Projection, principal_directions
from bias_pipeline.errors import DataError
from bias_pipeline.io.hashing import derived_seed

Pairing = Literal["random", "nearest"]


@dataclass(frozen=True)
class Subspace(Debias):
    """Projects the first k principal components of the groups' differences out.

    Chen and Dou (Measuring and Mitigating Bias in Vision-and-Language Models, 4.1), after Liang et
    al. (Towards Debiasing Sentence Representations, ACL 2020). Principal components are those of
    what is left of every vector when the mean of its definition set is taken off: a set has one
    vector of each group that differ in the group alone. Read literally the paper takes off each
    *group's* mean, which leaves no difference between groups to find.

    Texts come in such sets. Pictures do not: each set is one picture of every group, put together
    by chance, or each picture with those most like it.

    Attributes:
        pairing: how pictures come into sets: ``random``, or ``nearest`` in the embedding, so that
            what else differs between pictures does not hide the group.
    """

    pairing: Pairing = "random"

    def fit(self, examples: Examples) -> Projection:
        """The projection of one side.

        Raises:
            DataError: if a group has no example.
            UsageError: if there are not so many directions.
        """
        vectors, sets = examples.vectors, examples.sets
        if (sets < 0).all():
            rows, sets = matched(examples, self.pairing)
            vectors = vectors[rows]
        self.check_size(vectors)
        return Projection(principal_directions(centred(vectors, sets), self.k))


def centred(vectors: FloatArray, sets: IntArray) -> FloatArray:
    """(N, D) vectors less the mean of their definition sets.

    Args:
        vectors: (N, D).
        sets: (N,) which set each belongs to.

    Example:
        >>> centred(np.array([[1.0], [3.0], [7.0]]), np.array([0, 0, 1])).ravel().tolist()
        [-1.0, 1.0, 0.0]
    """
    _, own = np.unique(sets, return_inverse=True)
    sums = np.zeros((int(own.max(initial=-1)) + 1, vectors.shape[1]))
    np.add.at(sums, own, vectors)
    found: FloatArray = vectors - (sums / np.bincount(own)[:, None])[own]
    return found


def matched(examples: Examples, pairing: Pairing) -> tuple[IntArray, IntArray]:
    """Pictures in sets of one of every group, each picture of the smallest group in one set.

    Args:
        examples: without sets.
        pairing: see :class:`Subspace`.

    Returns:
        (M,) rows of the examples and (M,) their sets.

    Raises:
        DataError: if a group has no example.
    """
    rows = [np.flatnonzero(examples.groups == k) for k in range(len(examples.names))]
    empty = [name for name, own in zip(examples.names, rows, strict=True) if not len(own)]
    if empty:
        raise DataError(f"debias: no picture of group {empty[0]!r} to learn its direction from")
    random = np.random.default_rng(derived_seed("pairing", examples.seed, 0))
    shuffled = [random.permutation(own) for own in rows]
    anchors = min(shuffled, key=len)
    columns = [
        own[: len(anchors)]
        if pairing == "random" or own is anchors
        else _nearest(examples.vectors, anchors, own)
        for own in shuffled
    ]
    sets = np.arange(len(anchors))
    return np.concatenate(columns), np.tile(sets, len(columns))


def _nearest(vectors: FloatArray, anchors: IntArray, others: IntArray) -> IntArray:
    """(A,) of each anchor the nearest of the others, which may be that of several."""
    return others[np.argmax(vectors[anchors] @ vectors[others].T, axis=1)]
