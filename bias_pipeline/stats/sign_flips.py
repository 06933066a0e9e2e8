"""Exact tests that flip the signs of contrasts. Without an effect, both signs are equally likely.

The signs of contrasts are flipped in many patterns. p says how often a statistic is then at least
as large as without flips (Fisher's randomization test). For up to sixteen contrasts, all patterns
are used. For more contrasts, 9,999 patterns are drawn by the names of contrasts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.io.hashing import UIntArray, hash_ids, random_words
from bias_pipeline.stats.bootstrap import Estimate, quantile
from bias_pipeline.stats.shares import difference_ends

FEWEST_SETS = 6  # fewest differences other than 0; fewer have no p below 0.05
FEWEST_NORMAL = 10  # with so many, Student's interval of their mean holds
_LEVEL = 0.95
_MOST_LISTED, _DRAWN = 16, 9_999
_WORDS, _BITS = 8, 64  # how many random words a block has; each word has so many signs
_ROUNDING = 1e-9  # relative to the largest value; sums in another order are no difference


@dataclass(frozen=True, eq=False)
class SignFlips:
    """Patterns of signs for J contrasts. A hash identifies each contrast.

    Example:
        >>> flips = SignFlips(np.arange(3, dtype=np.uint64))
        >>> differences = np.array([1.0, 1.0, 1.0])
        >>> null = flips.null(lambda signs: signs @ differences)
        >>> len(null), float(flips.p_value(3.0, null))
        (8, 0.125)
    """

    keys: UIntArray  # (J,)

    @property
    def complete(self) -> bool:
        """Whether all patterns are used, including the one without flips."""
        return len(self.keys) <= _MOST_LISTED

    def blocks(self) -> Iterator[Float64Array]:
        """The patterns in blocks, each (B, J) of 1 and -1."""
        if self.complete:
            numbers = np.arange(1 << len(self.keys))[:, None]
            listed = numbers >> np.arange(len(self.keys)) & 1
            yield 1.0 - 2.0 * listed.astype(np.float64)
            return
        places = np.arange(_BITS, dtype=np.uint64)[:, None]
        for first in range(0, _DRAWN, _WORDS * _BITS):
            parts = np.arange(first, first + _WORDS, dtype=np.uint64)[:, None]
            words = random_words("sign flips", 0, self.keys, parts)  # (_WORDS, J)
            bits = (words[:, None, :] >> places & np.uint64(1)).reshape(-1, len(self.keys))
            yield 1.0 - 2.0 * bits[: _DRAWN - first].astype(np.float64)

    def null(self, statistic: Callable[[Float64Array], Float64Array]) -> Float64Array:
        """(F, ...): the statistic for every pattern, from (B, J) signs at a time."""
        return np.concatenate([statistic(signs) for signs in self.blocks()])

    def p_value(
        self, observed: Float64Array | float, null: Float64Array, *, mid: bool = False
    ) -> Float64Array:
        """How often a statistic under the null is at least as large as the observed statistic."""
        return p_of_null(observed, null, complete=self.complete, mid=mid)


def p_of_null(
    observed: Float64Array | float, null: Float64Array, *, complete: bool, mid: bool = False
) -> Float64Array:
    """How often a statistic under the null is at least as large as the observed statistic.

    If not all patterns are used, the observed pattern is added. With ``mid``, patterns that give
    exactly the observed value count as half. Otherwise a test with few distinct values would reject
    too rarely (Lancaster 1961).
    """
    rounding = _ROUNDING * np.abs(null).max(initial=1e-300)
    weight = 0.5 if mid else 1.0
    larger = (null > observed + rounding).sum(axis=0)
    equal = (np.abs(null - observed) <= rounding).sum(axis=0)
    added = 0 if complete else 1
    p_values: Float64Array = (larger + weight * (equal + added)) / (len(null) + added)
    return p_values


def mean_p(keys: UIntArray, values: Float64Array) -> float:
    """The two-sided p value of a mean of (J,) values (McNemar's test for values -1, 0 and 1)."""
    changed = np.abs(values) > 1e-12
    flips = SignFlips(keys[changed])
    left = values[changed]
    null = flips.null(lambda signs: np.abs(signs @ left))
    return float(flips.p_value(abs(float(left.sum())), null, mid=True))


def size_difference(
    first: Mapping[str, float],
    other: Mapping[str, float],
    ends: Sequence[tuple[float, float]],
) -> Estimate:
    """How much larger the first captioner's mean difference between groups is in absolute size.

    Each captioner has a difference between groups for each set of pictures. Sets that only one
    captioner has are left out. If both mean differences have the same sign, the second captioner's
    difference is subtracted from the first captioner's for each set, and p comes from flipped
    signs. Otherwise absolute sizes are compared in the same way.

    Args:
        first: by set, the first captioner's difference, in [-1, 1].
        other: the same for the other captioner.
        ends: both ends of each captioner's interval. They are used to widen the interval if fewer
            than ten sets differ, as Student's interval is then too narrow.

    Returns:
        The estimate. The p value is NaN if fewer than six sets differ. Every number is NaN if there
        are fewer than two sets.

    Example:
        >>> first = {f"set {k}": -0.5 for k in range(8)}
        >>> other = {f"set {k}": -0.5 * (k > 5) for k in range(8)}
        >>> gap = size_difference(first, other, [(-0.5, -0.5), (-0.3, 0.0)])
        >>> gap.value, gap.p_value
        (0.375, 0.015625)
    """
    shared = [name for name in first if name in other]
    if len(shared) < 2:
        return Estimate(math.nan)
    both = np.array([[each[name] for name in shared] for each in (first, other)])
    means = both.mean(axis=1)
    signs = np.where(means < 0, -1.0, 1.0)
    values = signs[0] * both[0] - signs[1] * both[1]
    value, freedom = float(values.mean()), len(shared) - 1
    error = float(values.std(ddof=1)) / math.sqrt(len(shared))
    half = quantile(_LEVEL, freedom) * error
    low, high = value - half, value + half
    n_differing = int((np.abs(values) > 1e-12).sum())
    if n_differing < FEWEST_NORMAL:
        one, two = (
            (sign * mean, *sorted((sign * ends_of[0], sign * ends_of[1])))
            for sign, mean, ends_of in zip(signs.tolist(), means.tolist(), ends, strict=True)
        )
        wider = difference_ends(one, two, 0.0)
        low, high = min(low, wider[0]), max(high, wider[1])
        error = (high - low) / 2 / quantile(_LEVEL, freedom)
    return Estimate(
        value,
        ci_low=low,
        ci_high=high,
        p_value=mean_p(hash_ids(shared), values) if n_differing >= FEWEST_SETS else math.nan,
        error=error,
        freedom=freedom,
    )
