"""Directions, and vectors without them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.debias.base import FloatArray


def principal_directions(vectors: FloatArray, k: int) -> FloatArray:
    """(k', D) orthonormal directions of most variance, k' at most k: those that have any.

    Args:
        vectors: (N, D) whose mean is 0.
        k: how many.

    Example:
        >>> principal_directions(np.array([[2.0, 0.0], [-2.0, 0.0]]), 2).round(6).tolist()
        [[1.0, 0.0]]
    """
    _, sizes, directions = np.linalg.svd(vectors, full_matrices=False)
    some = sizes > sizes.max(initial=0.0) * 1e-6
    found = directions[some][:k]
    largest = np.argmax(abs(found), axis=1)  # either sign would do: one for all machines
    signs = np.sign(found[np.arange(len(found)), largest])
    return np.asarray(found * signs[:, None])


@dataclass(frozen=True, eq=False)
class Projection:
    """Takes directions out of vectors: ``h - sum_j <h, v_j> v_j``.

    Attributes:
        directions: (k, D) orthonormal.
    """

    directions: FloatArray

    @property
    def spec(self) -> Mapping[str, object]:
        """The directions by their digest."""
        told = self.directions.astype("<f8").tobytes()
        return {"edit": "projection", "directions": hashlib.sha256(told).hexdigest()}

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """(N, D) what is left."""
        found: FloatArray = vectors - (vectors @ self.directions.T) @ self.directions
        return found
