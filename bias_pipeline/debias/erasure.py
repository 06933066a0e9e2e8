"""``debias=erasure``: removes what linear attackers can learn about the group (LEACE)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.debias.base import Debias, Examples, means_of

_LEAST = 1e-6  # of the largest variance: directions with less are noise and are kept


@dataclass(frozen=True)
class Erasure(Debias):
    """The least change after which groups have the same mean (Belrose et al. 2023, LEACE).

    The closed form of their theorem 4.3: whiten the vectors, remove the directions correlated with
    the group, undo the whitening. Then no linear attacker beats chance on the examples; on other
    images this holds if there are many more examples than dimensions. ``k`` is ignored: K groups
    need K - 1 directions.
    """

    unused: ClassVar[tuple[str, ...]] = ("k",)

    def fit(self, examples: Examples) -> Affine:
        """The eraser of one side.

        Raises:
            DataError: if a group has no example.
        """
        means_of(examples)  # every group has an example
        vectors = examples.vectors
        centre = vectors.mean(axis=0)
        deviations = vectors - centre
        shown = np.eye(len(examples.names))[examples.groups]
        together = (
            deviations.T @ (shown - shown.mean(axis=0)) / len(deviations)
        )  # (D, K) covariances
        sizes, axes = np.linalg.eigh(deviations.T @ deviations / len(deviations))
        some = sizes > _LEAST * max(sizes.max(), 0.0)
        spread, axes = np.sqrt(sizes[some]), axes[:, some]
        directions = _span((axes / spread).T @ together)  # (R, K') orthonormal, whitened
        matrix = (axes * spread) @ directions @ directions.T @ (axes / spread).T
        return Affine(matrix, centre)


def _span(columns: Float64Array) -> Float64Array:
    """(R, K') an orthonormal basis of the columns' span."""
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    span: Float64Array = basis[:, sizes > 1e-9 * sizes.max(initial=0.0)]
    return span


@dataclass(frozen=True, eq=False)
class Affine:
    """``x - M (x - c)``.

    Attributes:
        matrix: (D, D), M.
        centre: (D,), c.
    """

    matrix: Float64Array
    centre: Float64Array

    @property
    def spec(self) -> Mapping[str, object]:
        """The digest of both."""
        numbers = b"".join(array.astype("<f8").tobytes() for array in (self.matrix, self.centre))
        return {"edit": "affine", "numbers": hashlib.sha256(numbers).hexdigest()}

    def __call__(self, vectors: Float64Array) -> Float64Array:
        """(N, D) the edited vectors."""
        edited: Float64Array = vectors - (vectors - self.centre) @ self.matrix.T
        return edited
