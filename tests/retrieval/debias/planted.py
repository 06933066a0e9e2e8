"""Vectors whose group is known to move them."""

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.retrieval.debias.base import Examples

NAMES = ("male", "female")
SIZE = 12


def planted_examples(n: int, strength: float, seed: int = 0) -> tuple[Examples, Float64Array]:
    """Pictures whose group moves them along one direction of twelve, and that direction."""
    random = np.random.default_rng(seed)
    axis = np.linalg.qr(np.random.default_rng(99).standard_normal((SIZE, SIZE)))[0][0]
    groups = random.integers(0, 2, n)
    vectors = random.standard_normal((n, SIZE)) + strength * np.where(groups, 1, -1)[:, None] * axis
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return Examples(unit, groups, np.full(n, -1), NAMES, seed), axis
