"""Intervals: attacker variance and image-sampling variance, reported apart and combined."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bias_pipeline.declared import Configurable, InnerShare, Resamples, Seed
from bias_pipeline.errors import UsageError
from bias_pipeline.io.hashing import UIntArray, stream
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.shares import effective_trials, wilson

FloatArray = npt.NDArray[np.float64]

_BATCH_BYTES = 64_000_000
_BLOCK_WORDS = 1 << 15  # random words are made as many at a time as stay in a core's cache

# P(Poisson(1) <= k) for k = 0, 1, ... in steps of 2^-32; above the last nothing is left.
_POISSON_LIMITS = (
    np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)]) * 2.0**32
).astype(np.uint32)

Combination = Callable[..., FloatArray]
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, eq=False)
class Draws:
    """A number under every resampling of the images, before seeds are averaged.

    Attributes:
        per_seed: (S,) the number itself.
        resampled: (B, S) under the B resamplings; the same for every result of equal settings.
        trained: whether seeds stand for attackers; a count has one column and no seed.
        trials: of a share, how many independent observations it is a share of
            (:func:`~bias_pipeline.stats.shares.effective_trials`); NaN of any other number.
    """

    per_seed: FloatArray
    resampled: FloatArray
    trained: bool = True
    trials: float = math.nan

    def __sub__(self, other: Draws) -> Draws:
        """The difference, seed by seed and resampling by resampling."""
        return Draws(self.per_seed - other.per_seed, self.resampled - other.resampled, self.trained)

    @property
    def is_share(self) -> bool:
        """Whether the number is a share of observations."""
        return not math.isnan(self.trials)

    @property
    def image_std(self) -> float:
        """Standard deviation (ddof 1) of the mean over seeds under resampling of images."""
        return float(np.std(self.resampled.mean(axis=-1), ddof=1))


@dataclass(frozen=True)
class Estimate:
    """A number and what is known of it.

    Attributes:
        value: mean over seeds.
        seed_std: standard deviation over the S seeds (ddof 1), each with its own split and fresh
            attackers; NaN for one seed.
        image_std: standard deviation of ``value`` under resampling of images.
        ci_low: lower end of the interval.
        ci_high: upper end of the interval.
        p_value: two-sided, of the hypothesis that the number is the one that means no bias; below
            1 - level exactly where the interval does not hold that number. NaN where nothing was
            tested.
        n_seeds: S.
        corrected: ``value`` less what noise adds to it, see :func:`summary`.
        error: combined standard deviation, of attackers and images.
        error_below: the same on the lower side of ``value``, where the interval is of a share and
            so not symmetric; NaN elsewhere.
        error_above: on the upper side.
        freedom: degrees of freedom of Student's t.
        choice_std: standard deviation (ddof 1) over choices that ``value`` is the mean of, see
            :mod:`bias_pipeline.stats.choices`; NaN where nothing was chosen.
        draws: what the estimate was made from, None where nothing was resampled.
    """

    value: float
    seed_std: float
    image_std: float
    ci_low: float
    ci_high: float
    p_value: float
    n_seeds: int
    corrected: float = math.nan
    error: float = math.nan
    error_below: float = math.nan
    error_above: float = math.nan
    freedom: float = math.inf
    choice_std: float = math.nan
    draws: Draws | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Bootstrap(Configurable):
    """Resampling of images, never of captions.

    In every resampling an image counts Poisson(1) times, by a hash of its id: the Poisson
    bootstrap (Hanley and MacGibbon 2006; Chamandy et al. 2012). So one resampling gives an image
    the same weight whatever captioner or metric is estimated, and stored draws of two results
    can be compared pair by pair.

    Attributes:
        resamples: how many bootstrap samples are drawn, at least 2.
        level: coverage of the interval, in (0, 1).
        seed: of the resampling.
    """

    resamples: Resamples = 1000
    level: InnerShare = 0.95
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            UsageError: if a setting is out of its range.
        """
        if self.resamples < 2 or not 0 < self.level < 1:
            raise UsageError(
                f"stats: resamples={self.resamples} must be at least 2 and level={self.level} "
                "between 0 and 1"
            )

    def estimate(
        self,
        tables: Sequence[ScoreTable],
        combinations: Mapping[Name, Combination],
        keys: UIntArray | None = None,
    ) -> dict[Name, Estimate]:
        """Estimate functions of the sides' scores on one joint resampling of the images.

        Args:
            tables: the score tables of the sides.
            combinations: name to a function of the sides' scores, each (..., S), that returns
                (..., S).
            keys: (N,) hashes of the ids of all images, by the rows that tables refer to; the
                rows' own numbers if left out.

        Returns:
            Name to estimate.
        """
        images = np.unique(np.concatenate([table.images for table in tables]))
        aligned = [table.at(images) for table in tables]

        def evaluate(weights: FloatArray) -> dict[Name, FloatArray]:
            sides = [table.per_seed(weights) for table in aligned]
            return {name: combine(*sides) for name, combine in combinations.items()}

        own = images.astype(np.uint64) if keys is None else keys[images]
        return self.estimate_weighted(own, evaluate)

    def estimate_weighted(
        self,
        keys: UIntArray,
        evaluate: Callable[[FloatArray], Mapping[Name, FloatArray]],
        *,
        trained: bool = True,
    ) -> dict[Name, Estimate]:
        """Estimate anything that can be computed on weighted images.

        Args:
            keys: (I,) hashes of the images' ids (:attr:`Corpus.keys`).
            evaluate: (B, I) how often each image counts to named numbers (B, S).
            trained: see :class:`Draws`.

        Returns:
            Name to estimate.
        """
        point = evaluate(np.ones((1, len(keys))))
        drawn = [evaluate(weights) for weights in self.weights(keys)]
        return {
            name: summary(
                Draws(values[0], np.concatenate([batch[name] for batch in drawn]), trained),
                self.level,
            )
            for name, values in point.items()
        }

    def weights(self, keys: UIntArray) -> Iterator[FloatArray]:
        """(b, I) how often each image counts, batch by batch, ``resamples`` lines in all.

        Args:
            keys: (I,) hashes of the images' ids (:attr:`Corpus.keys`).
        """
        batch = max(1, _BATCH_BYTES // (8 * len(keys)))
        block = max(1, _BLOCK_WORDS // len(keys))
        for start in range(0, self.resamples, batch):
            stop = min(start + batch, self.resamples)
            counts = np.empty((stop - start, len(keys)))
            for first in range(start, stop, block):
                last = min(first + block, stop)
                rows = np.arange(first, last, dtype=np.uint64)[:, None]
                words = stream("resample", self.seed, keys, rows)
                counts[first - start : last - start] = _poisson(words)
            yield counts


def _poisson(words: UIntArray) -> FloatArray:
    """Poisson(1) numbers from the upper half of random 64-bit words, by inversion.

    A table knows them from 16 bits, but for those that lie beside a limit.
    """
    counts = _TABLE[words >> np.uint64(48)]
    unsure = np.isnan(counts)
    counts[unsure] = _inverted((words[unsure] >> np.uint64(32)).astype(np.uint32))
    return counts


def _inverted(high: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
    return np.searchsorted(_POISSON_LIMITS, high, side="right")


_FIRST = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)  # of those that share 16 bits
_LAST = _FIRST + np.uint32(0xFFFF)
_TABLE = np.where(_inverted(_FIRST) == _inverted(_LAST), _inverted(_FIRST), math.nan)


def summary(draws: Draws, level: float = 0.95) -> Estimate:
    """The estimate that draws amount to; without a p value.

    A count that noise moves one way, such as the mean of what lies above a threshold, is moved on
    under resampling. Twice that way back lies the corrected value (once is the textbook's, Efron
    and Tibshirani 1993, 10.6, for numbers that are smooth; where signs and thresholds are read off
    the same images resampling was measured to tell about half). The interval reaches from the
    value to the corrected one and half a width beyond both: ``experiments/null_coverage`` shows
    what it covers. Attackers' scores are means, which resampling does not move.

    Args:
        draws: a number per seed and resampling; a share has Wilson's interval.
        level: coverage of the interval, in (0, 1).
    """
    n_seeds = len(draws.per_seed)
    seed_std = float(np.std(draws.per_seed, ddof=1)) if n_seeds > 1 else math.nan
    means = draws.resampled.mean(axis=-1)
    image_std = draws.image_std
    value = float(draws.per_seed.mean())
    if draws.is_share:
        return between(
            value, *wilson(value, draws.trials, quantile(level)), image_std, level, draws
        )
    error, freedom = spread(seed_std, image_std, n_seeds if draws.trained else 0)
    half = quantile(level, freedom) * error if error > 0 else error
    corrected = value if draws.trained else value - 2 * float(means.mean() - value)
    return Estimate(
        value=value,
        seed_std=seed_std,
        image_std=image_std,
        ci_low=min(value, corrected) - half,
        ci_high=max(value, corrected) + half,
        p_value=math.nan,
        n_seeds=n_seeds if draws.trained else 0,
        corrected=corrected,
        error=error,
        freedom=freedom,
        draws=draws,
    )


def share_of(draws: Draws | None, observations: float, images: float) -> Draws:
    """The draws of a count that is a share of observations.

    Args:
        draws: of the share.
        observations: how many it is a share of, such as captions.
        images: at most how many images they are of, which are independent.
    """
    assert draws is not None
    clusters = min(observations, images)
    share = float(draws.per_seed.mean())
    trials = effective_trials(share, draws.image_std, observations, clusters)
    return replace(draws, trials=trials)


def widened(draws: Draws | None, factor: float) -> Draws:
    """The same with resamplings as many times as far from the estimate."""
    assert draws is not None
    return replace(draws, resampled=draws.per_seed + factor * (draws.resampled - draws.per_seed))


def between(
    value: float, low: float, high: float, image_std: float, level: float, draws: Draws
) -> Estimate:
    """The estimate of a count whose interval is known, such as a share; without a p value.

    Args:
        value: the number.
        low: lower end of its interval.
        high: upper end.
        image_std: standard deviation under resampling of images.
        level: coverage of the interval, in (0, 1).
        draws: what it was made from.
    """
    nan, z = math.nan, quantile(level)
    return Estimate(
        value=value,
        seed_std=nan,
        image_std=image_std,
        ci_low=low,
        ci_high=high,
        p_value=nan,
        n_seeds=0,
        corrected=value,
        error=(high - low) / (2 * z),
        error_below=(value - low) / z,
        error_above=(high - value) / z,
        draws=draws,
    )


def spanned(estimate: Estimate) -> Estimate:
    """The same without an interval where no resampling moved it, which is no certainty.

    Args:
        estimate: of a count; one that is a share has an interval whatever was counted.
    """
    if estimate.image_std > 0 or estimate.ci_low < estimate.ci_high:
        return estimate
    return replace(estimate, ci_low=math.nan, ci_high=math.nan)


def steady(estimate: Estimate, level: float) -> Estimate:
    """The same estimate where some resamplings hold no image that a number rests on.

    Such a resampling says nothing; the seed's own number stands in for it. It is not rare: with ten
    images a number, 1000 resamplings and five seeds, one run in five has one, and would have no
    interval at all.

    Args:
        estimate: with its draws.
        level: coverage of the interval, in (0, 1).
    """
    draws = estimate.draws
    if draws is None or not np.isnan(draws.resampled).any():
        return estimate
    filled = np.where(np.isnan(draws.resampled), draws.per_seed, draws.resampled)
    return summary(replace(draws, resampled=filled), level)


def against(estimate: Estimate, neutral: float) -> Estimate:
    """The same estimate with the p of its being neutral: the interval's own test, turned around.

    A single seed has none: how much attackers vary is then not known.

    Args:
        estimate: with an error.
        neutral: the value that means no bias.

    Example:
        >>> draws = Draws(np.array([0.3, 0.5]), np.array([[0.2, 0.4], [0.4, 0.6]]))
        >>> found = against(summary(draws), 0.4)
        >>> found.p_value, found.ci_low < 0.4 < found.ci_high
        (1.0, True)
    """
    if estimate.n_seeds == 1:
        return estimate
    return replace(estimate, p_value=two_sided_p(estimate, neutral))


def two_sided_p(estimate: Estimate, neutral: float = 0.0) -> float:
    """P of an estimate this far from neutral, in [0, 1]; NaN without an error.

    Args:
        estimate: with an error.
        neutral: the value that is tested.
    """
    from scipy import special  # here: descriptive commands need no scipy

    low, high = sorted((estimate.value, estimate.corrected))
    distance, error = max(low - neutral, neutral - high, 0.0), estimate.error
    if not math.isnan(estimate.error_below):
        error = estimate.error_below if neutral < low else estimate.error_above
    if not error > 0:
        return math.nan if math.isnan(error + low) else float(distance == 0)
    if math.isfinite(estimate.freedom):
        p_value = float(2 * special.stdtr(estimate.freedom, -distance / error))
    else:
        p_value = math.erfc(distance / error / math.sqrt(2))
    return max(p_value, sys.float_info.min)  # 0 would say that it cannot be


def quantile(level: float, freedom: float = math.inf) -> float:
    """How many errors half of an interval is wide: of Student's t, or the normal law.

    Example:
        >>> round(quantile(0.95, math.inf), 2), round(quantile(0.95, 4), 2)
        (1.96, 2.78)
    """
    from scipy import special

    above = (1 + level) / 2
    normal = math.isinf(freedom)
    return float(special.ndtri(above) if normal else special.stdtrit(freedom, above))


def spread(seed_std: float, image_std: float, n_seeds: int) -> tuple[float, float]:
    """Combined standard deviation of a mean over seeds, and its degrees of freedom.

    The variance is ``seed_std**2 / S + image_std**2``. Seeds share most of their training images,
    so their spread alone is too small a variance for their mean (Nadeau and Bengio 2003); the
    image term stands in for what they share. Student's t with Satterthwaite's degrees of freedom
    pays for estimating the first term from S values. Of a single seed the first term is unknown;
    since every seed tests other images it is taken to be as large as the second.

    Args:
        seed_std: standard deviation over seeds, NaN for a single one.
        image_std: standard deviation under resampling of images.
        n_seeds: S; 0 where nothing was trained.

    Example:
        >>> spread(0.0, 1.0, 5), spread(math.nan, 1.0, 0)
        ((1.0, inf), (1.0, inf))
        >>> round(spread(math.nan, 1.0, 1)[0], 3)
        1.414
    """
    if n_seeds == 1:
        return math.sqrt(2) * image_std, math.inf
    of_seeds = 0.0 if n_seeds == 0 else seed_std**2 / n_seeds
    variance = of_seeds + image_std**2
    freedom = (n_seeds - 1) * (variance / of_seeds) ** 2 if of_seeds > 0 else math.inf
    return math.sqrt(variance), freedom
