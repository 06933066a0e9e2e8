"""Draws random numbers by name: hashes of a purpose, which do not depend on earlier draws.

Every draw names its purpose in :func:`random_words`, so that two purposes never share numbers.
(Label noise once shared the numbers of splits, and so fell only on test images.)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

UIntArray = npt.NDArray[np.uint64]
UInt8Array = npt.NDArray[np.uint8]

_BLOCK = 1 << 14  # random words drawn at a time, so that they stay in a core's cache


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


def hash_ids(texts: Iterable[str]) -> UIntArray:
    """A 64-bit hash of each text, equal on every platform.

    Example:
        >>> hash_ids(["42"]).tolist() == hash_ids(["41", "42"]).tolist()[1:]
        True
    """
    hashes = bytearray()
    for text in texts:
        hashes += hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64)


# Each purpose has its own stream. Split and resampling came first and retain their old streams
# (they differ in the number of steps): new streams would change every attacker and interval.
PURPOSES = (
    "split", "resample", "noise", "bundle", "retry", "dropout", "limit", "language bias",
    "deletion", "mask noise", "ties", "pairing", "attackers", "pictures", "permute", "examples",
    "words out", "words in", "captioner's words out", "leaning", "label noise",
    "description folds", "annotator alike", "annotator's length", "cells", "gold", "gold draw",
    "sign flips", "exchanged groups",
)  # fmt: skip
_SALTS = {
    **dict(zip(PURPOSES, hash_ids(PURPOSES), strict=True)),
    "split": np.uint64(0),
    "resample": np.uint64(0),
}
_ONE = np.zeros(1, np.uint64)


def random_words(purpose: str, seed: int, keys: UIntArray, part: UIntArray = _ONE) -> UIntArray:
    """Random 64-bit words, one for each key; the only source of randomness.

    ``part`` is the number of the draw, for a purpose that needs several draws (a split needs one).
    Words of different purposes, seeds or parts are unrelated.

    Example:
        >>> keys = hash_ids(["1", "2", "3"])
        >>> bool((random_words("split", 0, keys) == random_words("noise", 0, keys)).any())
        False
    """
    start = mix(np.array([seed], np.uint64) ^ _SALTS[purpose])
    return mix(keys ^ (start if purpose == "split" else mix(start ^ part)))


def derived_seed(purpose: str, seed: int, number: int) -> int:
    """The seed of a further generator (such as the generator of a retry), in [0, 2**63).

    Example:
        >>> derived_seed("retry", 0, 1) != derived_seed("retry", 1, 0)
        True
    """
    return int(random_words(purpose, seed, np.array([number], np.uint64))[0] >> np.uint64(1))


# P(Poisson(1) <= k) for k = 0, 1, ... in steps of 2^-32; larger k are below that precision.
LIMITS = (np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)]) * 2.0**32).astype(
    np.uint32
)


def poisson(words: UIntArray) -> UInt8Array:
    """Poisson(1) numbers, drawn by inversion from the upper half of random 64-bit words."""
    high = (words >> np.uint64(32)).astype(np.uint32)
    counts: UInt8Array = (high >= LIMITS[0]).view(np.uint8)
    for limit in LIMITS[1:]:  # comparisons of neighbours cost a third of a search for each word
        counts += high >= limit
    return counts


def poisson_counts(keys: UIntArray, resamplings: range, seed: int) -> UInt8Array:
    """(B, I) how often each image counts in each of B resamplings, as Poisson(1) numbers.

    An image's number depends neither on other images nor on other resamplings.

    Example:
        >>> keys = hash_ids(["1", "2", "3"])
        >>> fifth = poisson_counts(keys[1:], range(5, 6), 0)[0]
        >>> poisson_counts(keys, range(9), 0)[5, 1:].tolist() == fifth.tolist()
        True
    """
    numbers = np.array(resamplings, np.uint64)[:, None]
    counts = np.empty((len(numbers), len(keys)), np.uint8)
    for first in range(0, len(keys), _BLOCK):
        some = slice(first, first + _BLOCK)
        together = max(1, _BLOCK // len(keys[some]))
        for start in range(0, len(numbers), together):
            lines = slice(start, start + together)
            words = random_words("resample", seed, keys[some], numbers[lines])
            counts[lines, some] = poisson(words)
    return counts
