"""Random numbers by name: a hash of what a number is for, never of how many were drawn before.

Every draw names its purpose in :func:`stream`, so that two purposes never decide by the same
numbers: label noise that went by the numbers of the split fell on test images alone.
"""

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


# What is drawn, each from a stream of its own. The split and the resampling came first and keep the
# streams they had, which another number of steps tells apart: new ones would train every attacker
# and draw every interval anew for nothing.
PURPOSES = (
    "split", "resample", "noise", "bundle", "retry", "dropout", "limit", "language bias",
    "deletion", "mask noise", "ties", "pairing", "attackers", "pictures", "permute",
)  # fmt: skip
_SALTS = {
    **dict(zip(PURPOSES, keys_of(PURPOSES), strict=True)),
    "split": np.uint64(0),
    "resample": np.uint64(0),
}
_ONE = np.zeros(1, np.uint64)


def stream(purpose: str, seed: int, keys: UIntArray, part: UIntArray = _ONE) -> UIntArray:
    """Random 64-bit words, one for each key; the one function that makes them.

    Args:
        purpose: one of :data:`PURPOSES`.
        seed: any whole number in [0, 2**64).
        keys: (...) what the words belong to, such as :attr:`Corpus.keys`.
        part: (...) which of several draws of one purpose, broadcast with ``keys``; there is one
            split.

    Returns:
        (...) uniform words; those of another purpose, seed or part are unrelated.

    Raises:
        KeyError: on an unknown purpose.

    Example:
        >>> keys = keys_of(["1", "2", "3"])
        >>> bool((stream("split", 0, keys) == stream("noise", 0, keys)).any())
        False
    """
    start = mix(np.array([seed], np.uint64) ^ _SALTS[purpose])
    return mix(keys ^ (start if purpose == "split" else mix(start ^ part)))


def derived_seed(purpose: str, seed: int, number: int) -> int:
    """The seed of a further generator, such as that of a retry, in [0, 2**63).

    Args:
        purpose: see :func:`stream`.
        seed: see there.
        number: which one, from 0.

    Example:
        >>> derived_seed("retry", 0, 1) != derived_seed("retry", 1, 0)
        True
    """
    return int(stream(purpose, seed, np.array([number], np.uint64))[0] >> np.uint64(1))
