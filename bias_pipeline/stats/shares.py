"""Computes intervals of shares and of their differences, also for rare or absent events.

If an event never occurs, the bootstrap of its share is always 0. If the event is rare, the
bootstrap interval is too narrow. Wilson's score interval, and its extension to paired differences,
are valid for any count.
"""

from __future__ import annotations

import math

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray

NORMAL_95 = 1.959964  # standard errors on either side of a 95 % interval


def wilson(share: float, trials: float, z: float) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927), in [0, 1].

    Example:
        >>> [round(end, 3) for end in wilson(0.0, 30, 1.96)]
        [0.0, 0.114]
    """
    scale = 1 + z**2 / trials
    centre = (share + z**2 / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))


def effective_trials(share: float, error: float, observations: float, clusters: float) -> float:
    """The number of independent observations that are as informative as clustered observations.

    Observations on one image are similar, so their number is divided by the design effect. The
    design effect is the variance under resampling of images, divided by the variance of independent
    observations. The design effect is kept between 1 and the number of observations per cluster. If
    resampling changes nothing, the largest design effect is assumed.
    """
    largest = max(1.0, observations / clusters)
    variance = share * (1 - share) / observations
    effect = error**2 / variance if variance > 0 and error > 0 else largest
    return observations / min(max(effect, 1.0), largest)


def spread_of_small_shares(counts: Float64Array) -> float:
    """A factor that corrects the spread of a mean of shares with few observations each.

    Under resampling, the variance of a share of n observations is too small by a factor of (n - 1)
    / n on average. About half of this error is already compensated, since resamples also miss some
    observations. So the variance is multiplied by n / (n - 1/2) here (ours);
    ``experiments/inference`` has the simulation. Counts of 0 are ignored.

    Example:
        >>> import numpy as np
        >>> round(spread_of_small_shares(np.array([2.0, 2.0])), 3)
        1.155
    """
    few = counts[counts > 0]
    return math.sqrt((1 / (few - 0.5)).sum() / (1 / few).sum()) if len(few) else 1.0


def difference_ends(
    first: tuple[float, float, float], second: tuple[float, float, float], correlation: float
) -> tuple[float, float]:
    """The interval of a difference, from the intervals of two numbers (Newcombe 1998, method 10).

    ``correlation`` is the correlation of the two estimates.
    """
    (one, one_low, one_high), (two, two_low, two_high) = first, second

    def half(toward_one: float, toward_two: float) -> float:
        square = toward_one**2 + toward_two**2 - 2 * correlation * toward_one * toward_two
        return math.sqrt(max(square, 0.0))

    value = one - two
    return (
        max(-1.0, value - half(one - one_low, two_high - two)),
        min(1.0, value + half(one_high - one, two - two_low)),
    )


def same_share_p(events: IntArray, totals: IntArray) -> float:
    """The p value of the hypothesis that all K groups have the same true share.

    For two groups, p comes from Fisher's two-sided test (Fisher 1935). For more groups, labels are
    permuted at random 9,999 times, with the same totals. Then p says how often the largest and the
    smallest share are at least as far apart, and is never below 1/10,000. Groups with a total of 0
    are left out.

    Example:
        >>> import numpy as np
        >>> round(same_share_p(np.array([1, 8]), np.array([10, 10])), 4)
        0.0055
        >>> same_share_p(np.array([0, 0, 0]), np.array([5, 5, 5]))
        1.0
    """
    events, totals = events[totals > 0], totals[totals > 0]
    if len(totals) < 2:
        return math.nan
    if events.sum() in (0, totals.sum()):
        return 1.0
    from scipy import stats  # takes longer to import than most audits need it

    table = np.stack([events, totals - events])
    if len(totals) == 2:
        return float(stats.fisher_exact(table).pvalue)
    gap = np.ptp(events / totals)
    permuted = stats.random_table(table.sum(axis=1), totals, seed=0).rvs(9_999, random_state=0)
    far = np.ptp(permuted[:, 0] / totals, axis=1) >= gap - 1e-12
    return float((1 + far.sum()) / 10_000)
