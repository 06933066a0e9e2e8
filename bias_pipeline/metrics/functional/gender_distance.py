"""How near words of groups are to objects, as averages over mentions (Sabir and Padro 2023)."""

from __future__ import annotations

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.functional.counts import share


def cosines(objects: Float64Array, groups: Float64Array) -> Float64Array:
    """(T, K) cosines; NaN where either vector is missing or 0.

    Args:
        objects: (T, D) vectors, NaN or 0 for one that has none.
        groups: (K, D) the same.

    Example:
        >>> cosines(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.6, nan]]
    """
    units = []
    for vectors in (objects, groups):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units.append(
            np.divide(vectors, lengths, out=np.full(vectors.shape, np.nan), where=lengths > 0)
        )
    cosine: Float64Array = units[0] @ units[1].T
    return cosine


def mean_cosines(counts: Float64Array, near: Float64Array) -> Float64Array:
    """(..., K) mean cosine over all mentions; objects without a cosine are left out.

    Args:
        counts: (..., T) how often each object is counted.
        near: (T, K) cosines of objects and groups, NaN where there is none.

    Example:
        >>> near = np.array([[0.2, 0.1], [0.4, 0.3], [np.nan, 0.9]])
        >>> mean_cosines(np.array([3.0, 1.0, 5.0]), near).round(3).tolist()
        [0.25, 0.15]
    """
    known = np.isfinite(near).all(axis=1)
    counted = counts[..., known]
    return share(counted @ near[known], counted.sum(axis=-1, keepdims=True))
