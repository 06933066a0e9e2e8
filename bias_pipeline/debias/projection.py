"""Principal directions, and projections that remove directions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array


def principal_directions(vectors: Float64Array, k: int) -> Float64Array:
    """(k', D) orthonormal directions of most variance, k' <= k: those with any variance.

    Args:
        vectors: (N, D) whose mean is 0.
        k: how many.

    Example:
        >>> principal_directions(np.array([[2.0, 0.0], [-2.0, 0.0]]), 2).round(6).tolist()
        [[1.0, 0.0]]
    """
    _, sizes, directions = np.linalg.svd(vectors, full_matrices=False)
    some = sizes > sizes.max(initial=0.0) * 1e-6
    chosen = directions[some][:k]
    largest = np.argmax(abs(chosen), axis=1)  # fixes the sign, equal on all machines
    signs = np.sign(chosen[np.arange(len(chosen)), largest])
    return np.asarray(chosen * signs[:, None])


@dataclass(frozen=True, eq=False)
class Projection:
    """Removes directions from vectors: ``h - sum_j <h, v_j> v_j``.

    Attributes:
        directions: (k, D) orthonormal.
    """

    directions: Float64Array

    @property
    def spec(self) -> Mapping[str, object]:
        """The digest of the directions."""
        numbers = self.directions.astype("<f8").tobytes()
        return {"edit": "projection", "directions": hashlib.sha256(numbers).hexdigest()}

    def __call__(self, vectors: Float64Array) -> Float64Array:
        """(N, D) the edited vectors."""
        projected: Float64Array = vectors - (vectors @ self.directions.T) @ self.directions
        return projected
