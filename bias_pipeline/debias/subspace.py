"""``debias=subspace``: removes the directions in which groups differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.debias.base import Debias, Examples
from bias_pipeline.debias.projection import Projection, principal_directions
from bias_pipeline.errors import DataError
from bias_pipeline.io.hashing import derived_seed

Pairing = Literal["random", "nearest"]


@dataclass(frozen=True)
class Subspace(Debias):
    """Projects out the first k principal components of the groups' differences.

    Chen and Dou (Measuring and Mitigating Bias in Vision-and-Language Models, 4.1), after Liang et
    al. (Towards Debiasing Sentence Representations, ACL 2020). Components are computed after
    subtracting from every vector the mean of its definition set, which has one vector per group and
    differs only in the group. Read literally, the paper subtracts each *group's* mean, which
    removes the difference between groups.

    Texts come in such sets. Pictures do not: each set has one picture per group, combined at random
        or by similarity.

    Attributes:
        pairing: how pictures form sets: ``random``, or ``nearest`` in the embedding, so that other
            differences between pictures do not hide the group.
    """

    pairing: Pairing = "random"

    def fit(self, examples: Examples) -> Projection:
        """The projection of one side.

        Raises:
            DataError: if a group has no example.
            UsageError: if there are too few directions.
        """
        vectors, sets = examples.vectors, examples.sets
        if (sets < 0).all():
            rows, sets = matched(examples, self.pairing)
            vectors = vectors[rows]
        self.check_size(vectors)
        return Projection(principal_directions(centred(vectors, sets), self.k))


def centred(vectors: Float64Array, sets: IntArray) -> Float64Array:
    """(N, D) vectors minus the mean of their definition sets.

    Args:
        vectors: (N, D).
        sets: (N,) which set each belongs to.

    Example:
        >>> centred(np.array([[1.0], [3.0], [7.0]]), np.array([0, 0, 1])).ravel().tolist()
        [-1.0, 1.0, 0.0]
    """
    _, which = np.unique(sets, return_inverse=True)
    sums = np.zeros((int(which.max(initial=-1)) + 1, vectors.shape[1]))
    np.add.at(sums, which, vectors)
    result: Float64Array = vectors - (sums / np.bincount(which)[:, None])[which]
    return result


def matched(examples: Examples, pairing: Pairing) -> tuple[IntArray, IntArray]:
    """Sets of one picture per group, one set for each picture of the smallest group.

    Args:
        examples: without sets.
        pairing: see :class:`Subspace`.

    Returns:
        (M,) rows of the examples and (M,) their sets.

    Raises:
        DataError: if a group has no example.
    """
    rows = [np.flatnonzero(examples.groups == k) for k in range(len(examples.names))]
    empty = [
        name for name, group_rows in zip(examples.names, rows, strict=True) if not len(group_rows)
    ]
    if empty:
        raise DataError(f"debias: no picture of group {empty[0]!r} to learn its direction from")
    random = np.random.default_rng(derived_seed("pairing", examples.seed, 0))
    shuffled = [random.permutation(group_rows) for group_rows in rows]
    anchors = min(shuffled, key=len)
    columns = [
        group_rows[: len(anchors)]
        if pairing == "random" or group_rows is anchors
        else _nearest(examples.vectors, anchors, group_rows)
        for group_rows in shuffled
    ]
    sets = np.arange(len(anchors))
    return np.concatenate(columns), np.tile(sets, len(columns))


def _nearest(vectors: Float64Array, anchors: IntArray, others: IntArray) -> IntArray:
    """(A,) the nearest other of each anchor; one may be chosen several times."""
    return others[np.argmax(vectors[anchors] @ vectors[others].T, axis=1)]
