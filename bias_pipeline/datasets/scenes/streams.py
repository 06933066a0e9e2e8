"""Random numbers by name: one number for every (seed, image, stream, purpose).

A number depends only on its name, not on how many were drawn before. So changing one dial, adding
images or changing their order leaves every other draw unchanged.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.io.hashing import mix


def uniforms(seed: int, keys: Sequence[int], stream: int, purposes: Iterable[str]) -> Float64Array:
    """Numbers uniform in [0, 1), equal on every platform.

    Args:
        seed: of the whole world, any non-negative whole number below 2**64.
        keys: N whole numbers, one per image.
        stream: who draws: 0 for the image itself, k for its k-th annotator.
        purposes: P names of what is decided.

    Returns:
        (N, P) float64.

    Example:
        >>> both = uniforms(0, [7, 8], 1, ["place", "verb"])
        >>> both.shape
        (2, 2)
        >>> bool(uniforms(0, [8], 1, ["verb"])[0, 0] == both[1, 1])
        True
    """
    codes = np.array([zlib.crc32(purpose.encode()) for purpose in purposes], np.uint64)
    start = mix(np.array([seed], np.uint64))
    rows = mix(mix(start ^ np.array(keys, np.uint64)) ^ np.uint64(stream))
    mixed = mix(mix(rows[:, None] ^ codes))  # (N, P)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
