"""Do one captioner's captions change more with the group than another captioner's?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.stats.bootstrap import Estimate, quantile
from bias_pipeline.stats.shares import difference_ends
from bias_pipeline.stats.sign_flips import FEWEST_NORMAL, FEWEST_SETS, mean_p

_LEVEL = 0.95


def size_difference(
    first: Mapping[str, float],
    other: Mapping[str, float],
    ends: Sequence[tuple[float, float]],
) -> Estimate:
    """How much larger the first captioner's mean difference between groups is, whatever its sign.

    Each captioner has a difference between groups for each set. Sets that only one captioner has
    are left out. If the two mean differences have the same sign, differences are subtracted set by
    set, and p comes from flipped signs. Otherwise the sizes are compared in the same way.

    Args:
        first: set to the first captioner's difference, in [-1, 1].
        other: the same for the other captioner.
        ends: both ends of each captioner's interval. These ends widen the interval if fewer than
            ten sets differ, as Student's interval is then too narrow.

    Returns:
        The estimate; its p is NaN if fewer than six sets differ, and every number is NaN for fewer
        than two sets.

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
