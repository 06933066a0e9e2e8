"""How near words of groups are to objects, as averages over mentions (Sabir and Padro 2023)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bias_pipeline.metrics.functional.counts import share

FloatArray = npt.NDArray[np.float64]


def cosines(objects: FloatArray, groups: FloatArray) -> FloatArray:
    """(T, K) cosines of directions; NaN where either side has none.

    Args:
        objects: (T, D) vectors, NaN or 0 for one that has none.
        groups: (K, D) the same.

    Example:
        >>> cosines(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.6, nan]]
    """
    units = []
    for own in (objects, groups):
        lengths = np.linalg.norm(own, axis=1, keepdims=True)
        units.append(np.divide(own, lengths, out=np.full(own.shape, np.nan), where=lengths > 0))
    found: FloatArray = units[0] @ units[1].T
    return found


def mean_cosines(counts: FloatArray, near: FloatArray) -> FloatArray:
    """(..., K) mean cosine over all that is counted; objects without a cosine are left out.

    Args:
        counts: (..., T) how often each object is counted.
        near: (T, K) cosines of objects and groups, NaN where there is none.

    Example:
        >>> near = np.array([[0.2, 0.1], [0.4, 0.3], [np.nan, 0.9]])
        >>> mean_cosines(np.array([3.0, 1.0, 5.0]), near).round(3).tolist()
        [0.25, 0.15]
    """
    known = np.isfinite(near).all(axis=1)
    own = counts[..., known]
    return share(own @ near[known], own.sum(axis=-1, keepdims=True))
