"""Poisson(1) numbers from random words: how often an image counts in a resampling."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float64Array
from bias_pipeline.io.hashing import UIntArray

# P(Poisson(1) <= k) for k = 0, 1, ... in steps of 2^-32; larger k are below that precision.
LIMITS = (np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)]) * 2.0**32).astype(
    np.uint32
)


def poisson(words: UIntArray) -> Float64Array:
    """Poisson(1) numbers from the upper half of random 64-bit words, by inversion.

    A table gives them from 16 bits, except next to a limit, where all 32 bits are used.
    """
    counts = _TABLE[words >> np.uint64(48)]
    unsure = np.isnan(counts)
    counts[unsure] = _inverted((words[unsure] >> np.uint64(32)).astype(np.uint32))
    return counts


def _inverted(high: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
    return np.searchsorted(LIMITS, high, side="right")


_FIRST = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)  # of those that share 16 bits
_LAST = _FIRST + np.uint32(0xFFFF)
_TABLE = np.where(_inverted(_FIRST) == _inverted(_LAST), _inverted(_FIRST), math.nan)
