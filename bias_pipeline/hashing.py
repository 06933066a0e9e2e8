"""Random numbers by name: a hash of what a number is for, never of how many were drawn before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

UIntArray = npt.NDArray[np.uint64]


def mix(words: UIntArray) -> UIntArray:
    """One step of the splitmix64 generator: a bijection that makes neighbours unrelated.

    Example:
        >>> mixed = mix(np.arange(3, dtype=np.uint64))
        >>> len(set(mixed.tolist())), mixed.dtype
        (3, dtype('uint64'))
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def keys_of(texts: Iterable[str]) -> UIntArray:
    """A 64-bit hash of each text, equal on every platform.

    Example:
        >>> keys_of(["42"]).tolist() == keys_of(["41", "42"]).tolist()[1:]
        True
    """
    digests = (hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=8) for t in texts)
    return np.frombuffer(b"".join(d.digest() for d in digests), dtype="<u8").astype(np.uint64)
