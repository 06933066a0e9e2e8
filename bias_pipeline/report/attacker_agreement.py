"""How much scores and conclusions depend on the attacker and on the metric.

As DBAC (section 5.3, Tables 5 and 6): the coefficient of variation of a captioner's scores over
encoders, and by how much it is lower for one metric than for another. As ImageCaptioner2 (section
5.5.2): the share of captioners on which two classifiers disagree whether they amplify at all
(conflict score), and the correlation of the two rankings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.report.attacker_variants import Variants
from bias_pipeline.report.compare import LEVEL
from bias_pipeline.stats.compare import FEWEST_CORRELATED

Statistic = Callable[[Float64Array], Float64Array]


@dataclass(frozen=True)
class Interval:
    """A number with its interval over resampled images."""

    value: float  # the number
    # Lower end of the percentile interval; NaN where nothing was resampled
    low: float = float("nan")
    high: float = float("nan")  # upper end


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Coefficients of variation of one number."""

    scores: Variants  # the scores they are from
    per_captioner: dict[str, Interval]  # captioner to its coefficient
    mean: Interval  # over captioners
    left_out: tuple[str, ...] = ()  # variants under which only one of two numbers was scored

    @property
    def one_sided(self) -> bool:
        """Whether an interval does not include its number.

        Noise of images adds to the spread of attackers, so resampled coefficients are higher.
        """
        return any(
            not interval.low <= interval.value <= interval.high
            for interval in (*self.per_captioner.values(), self.mean)
            if not np.isnan([interval.value, interval.low]).any()
        )


def coefficient_of_variation(values: Float64Array) -> Float64Array:
    """Sample standard deviation (ddof 1) over the size of the mean, along the last axis.

    It does not depend on the unit, and grows without bound where the mean is near 0.

    Returns:
        Of shape (...); NaN for fewer than two values or a mean of 0.

    Example:
        >>> coefficient_of_variation(np.array([[1.0, 3.0], [1.0, -1.0]])).round(3).tolist()
        [0.707, nan]
    """
    if values.shape[-1] < 2:
        return np.full(values.shape[:-1], np.nan)
    means = np.abs(values.mean(axis=-1))
    spread = values.std(axis=-1, ddof=1)
    return np.divide(spread, means, out=np.full_like(means, np.nan), where=means > 0)


def sensitivity(scores: Variants) -> Sensitivity:
    """Coefficients of variation over the variants, with percentile intervals over images."""
    each = within(scores, coefficient_of_variation)
    mean = within(scores, _mean_of(coefficient_of_variation))
    return Sensitivity(scores, dict(zip(scores.captioners, each, strict=True)), mean[0])


def reduction(scores: Variants, other: Variants) -> Sensitivity:
    """By what share coefficients are lower than another number's; negative if higher.

    The mean is over captioners' reductions, as in the paper's last lines. Only captioners and
    variants that both have count. NaN where the other number does not vary.

    Example:
        >>> one = Variants.of_table("one", {"sat": {"a": 1.0, "b": 3.0}})
        >>> two = Variants.of_table("two", {"sat": {"a": 1.0, "b": 2.0}})
        >>> round(reduction(two, one).mean.value, 3)
        0.333
    """
    shared = [name for name in scores.captioners if name in other.captioners]
    if not shared:
        raise DataError(f"{scores.setting} and {other.setting} share no captioner")
    shared_variants = [name for name in scores.variants if name in other.variants]
    if len(shared_variants) < 2:
        raise DataError(
            f"{scores.setting} and {other.setting} share fewer than two variants: "
            f"{', '.join(scores.variants)}; {', '.join(other.variants)}"
        )
    both = _side_by_side(scores.only(shared, shared_variants), other.only(shared, shared_variants))
    width = len(shared_variants)

    def reduced(values: Float64Array) -> Float64Array:
        one, two = values[..., :width], values[..., width:]
        return 1 - share(coefficient_of_variation(one), coefficient_of_variation(two))

    each = within(both, reduced)
    mean = within(both, _mean_of(reduced))
    unpaired = [name for name in (*scores.variants, *other.variants) if name not in shared_variants]
    return Sensitivity(both, dict(zip(shared, each, strict=True)), mean[0], tuple(unpaired))


def _mean_of(statistic: Statistic) -> Statistic:
    return lambda values: statistic(values).mean(axis=-1, keepdims=True)


def within(scores: Variants, statistic: Statistic) -> list[Interval]:
    """A statistic of scores, each number with its percentile interval.

    Args:
        statistic: (..., C, V) scores to (..., K) numbers.
    """
    values = statistic(scores.values)
    if not len(scores.resampled):
        return [Interval(float(value)) for value in values]
    drawn = statistic(scores.resampled)
    return [_interval(*column) for column in zip(values, drawn.T, strict=True)]


def _interval(value: float, drawn: Float64Array) -> Interval:
    """A number with its percentile interval; NaN resamplings do not count."""
    there = drawn[~np.isnan(drawn)]
    if not len(there):
        return Interval(float(value))
    low, high = np.quantile(there, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(value), float(low), float(high))


def _side_by_side(one: Variants, two: Variants) -> Variants:
    """Both numbers of the same captioners, the second's columns after the first's."""
    alike = len(one.resampled) == len(two.resampled)
    values = np.hstack([one.values, two.values])
    nothing = np.empty((0, *values.shape))
    return replace(
        one,
        variants=(*one.variants, *two.variants),
        values=values,
        neutral=np.concatenate([one.neutral, two.neutral]),
        resampled=np.concatenate([one.resampled, two.resampled], axis=2) if alike else nothing,
    )


@dataclass(frozen=True)
class Agreement:
    """The agreement of two variants."""

    first: str  # the name of one variant
    second: str  # the name of the other
    # Share of captioners that one calls biased and the other does not, in [0, 1]
    conflicts: Interval
    conflicting: tuple[str, ...]  # their names
    # Correlation of scores, in [-1, 1]; NaN for fewer than three captioners, since two points
    # always lie on a line
    pearson: Interval
    spearman: Interval  # of ranks
    kendall: Interval  # tau-b


def conflicts(values: Float64Array, neutral: Float64Array) -> BoolArray:
    """Whether two variants disagree about bias: one is above the no-bias value, the other is not.

    Args:
        values: (..., C, 2) scores.

    Returns:
        (..., C).

    Example:
        >>> conflicts(np.array([[3.7, -0.8], [5.1, 0.3]]), np.zeros(2)).tolist()
        [True, False]
    """
    above = values > neutral
    disagree: BoolArray = above[..., 0] != above[..., 1]
    return disagree


def agreements(scores: Variants) -> list[Agreement]:
    """The agreement of every two variants, with percentile intervals over images."""
    pairs = combinations(range(len(scores.variants)), 2)
    return [_agreement(_of_two(scores, pair)) for pair in pairs]


def _of_two(scores: Variants, pair: Sequence[int]) -> Variants:
    at = list(pair)
    return Variants(
        scores.setting,
        scores.captioners,
        tuple(scores.variants[i] for i in at),
        scores.values[:, at],
        scores.neutral[at],
        scores.resampled[..., at],
    )


def _agreement(scores: Variants) -> Agreement:
    intervals = within(scores, lambda values: _numbers(values, scores.neutral))
    disagree = conflicts(scores.values, scores.neutral)
    return Agreement(
        scores.variants[0],
        scores.variants[1],
        intervals[0],
        tuple(name for name, conflict in zip(scores.captioners, disagree, strict=True) if conflict),
        *intervals[1:],
    )


def _numbers(values: Float64Array, neutral: Float64Array) -> Float64Array:
    """(..., 4) conflict score, Pearson, Spearman, Kendall of (..., C, 2) scores."""
    share = conflicts(values, neutral).mean(axis=-1)
    if values.shape[-2] < FEWEST_CORRELATED:
        absent = np.full_like(share, np.nan)
        return np.stack([share, absent, absent, absent], axis=-1)
    from scipy import stats  # slow to import

    ranks = stats.rankdata(values, axis=-2)
    return np.stack([share, _pearson(values), _pearson(ranks), _kendall(values)], axis=-1)


def _pearson(values: Float64Array) -> Float64Array:
    """(...) correlation of the two columns of (..., C, 2) numbers; NaN where one is constant."""
    centred = values - values.mean(axis=-2, keepdims=True)
    return _cosine(centred[..., 0], centred[..., 1])


def _kendall(values: Float64Array) -> Float64Array:
    """(...) tau-b: how often two captioners are ordered alike, corrected for ties."""
    one, two = np.triu_indices(values.shape[-2], 1)
    signs = np.sign(values[..., one, :] - values[..., two, :])
    return _cosine(signs[..., 0], signs[..., 1])


def _cosine(one: Float64Array, two: Float64Array) -> Float64Array:
    lengths = np.sqrt((one**2).sum(axis=-1) * (two**2).sum(axis=-1))
    product = (one * two).sum(axis=-1)
    return np.divide(product, lengths, out=np.full_like(lengths, np.nan), where=lengths > 0)
