"""``debias=erasure``: vectors of which no linear attacker learns the group."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bias_pipeline.debias.base import Debias, Examples, FloatArray, means_of

_LEAST = 1e-6  # of the largest variance: directions with less are noise, and left alone


@dataclass(frozen=True)
class Erasure(Debias):
    """The least change after which groups have the same mean (Belrose et al. 2023, LEACE).

    In the closed form of their theorem 4.3: vectors are whitened, the directions in which they go
    together with the group are taken out, and the whitening is undone. No linear attacker then does
    better than chance on what this was fitted to; on other images that holds as far as the examples
    are many against the numbers of a vector. ``k`` plays no part: K groups take K - 1 directions.
    """

    unused: ClassVar[tuple[str, ...]] = ("k",)

    def fit(self, examples: Examples) -> Affine:
        """The eraser of one side.

        Raises:
            DataError: if a group has no example.
        """
        means_of(examples)  # every group is there
        vectors = examples.vectors
        centre = vectors.mean(axis=0)
        own = vectors - centre
        shown = np.eye(len(examples.names))[examples.groups]
        together = own.T @ (shown - shown.mean(axis=0)) / len(own)  # (D, K) covariances
        sizes, axes = np.linalg.eigh(own.T @ own / len(own))
        some = sizes > _LEAST * max(sizes.max(), 0.0)
        spread, axes = np.sqrt(sizes[some]), axes[:, some]
        directions = _span((axes / spread).T @ together)  # (R, K') orthonormal, whitened
        matrix = (axes * spread) @ directions @ directions.T @ (axes / spread).T
        return Affine(matrix, centre)


def _span(columns: FloatArray) -> FloatArray:
    """(R, K') an orthonormal basis of what columns span."""
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    found: FloatArray = basis[:, sizes > 1e-9 * sizes.max(initial=0.0)]
    return found


@dataclass(frozen=True, eq=False)
class Affine:
    """``x - M (x - c)``.

    Attributes:
        matrix: (D, D), M.
        centre: (D,), c.
    """

    matrix: FloatArray
    centre: FloatArray

    @property
    def spec(self) -> Mapping[str, object]:
        """Both by their digest."""
        told = b"".join(own.astype("<f8").tobytes() for own in (self.matrix, self.centre))
        return {"edit": "affine", "numbers": hashlib.sha256(told).hexdigest()}

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """(N, D) what is left."""
        found: FloatArray = vectors - (vectors - self.centre) @ self.matrix.T
        return found
