"""Computes intervals from the variance over attackers and over images."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.declared import Configurable, InnerShare, Resamples, Seed
from bias_pipeline.io.hashing import UInt8Array, UIntArray, poisson_counts
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.shares import effective_trials, wilson

LEAST_TESTED = 3  # fewest tested images of a seed; ours
MOST_VOID = 0.08  # largest share of resamplings without any image; exp(-3) is below, exp(-2) above
_BATCH_BYTES = 16_000_000  # the system would take larger arrays back after each batch
_MOST_STORED = 250_000_000  # the most counts that are stored, such as 1,000 of 250,000 images

# Resampling tested images does not show the effect of other training images. Scores vary
# more than resampling estimates: 1.0 (accuracy) to 1.35 (LIC) times as much if human captions of
# 100 to 4,000 images are compared with human captions, and 1.6 times if groups are shuffled
# (tests/metrics/test_null.py). Ours.
UNSEEN_TRAINING = 1.6

Combination = Callable[..., Float64Array]
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, eq=False)
class Draws:
    """A number under every resampling of the images, for each seed.

    Attributes:
        per_seed: (S,) the number without resampling.
        resampled: (B, S) the number under each of B resamplings. Equal settings give equal
            resamplings.
        trained: whether attackers were trained for each seed. A count has one column and no seed.
        cross_fitted: whether the attackers of each seed together learnt from all images; see
            :data:`UNSEEN_TRAINING`.
        trials: for a share, the number of independent observations in its denominator
            (:func:`~bias_pipeline.stats.shares.effective_trials`); else NaN.
    """

    per_seed: Float64Array
    resampled: Float64Array
    trained: bool = True
    trials: float = math.nan
    cross_fitted: bool = False

    def __sub__(self, other: Draws) -> Draws:
        """The difference for each seed and each resampling."""
        return Draws(
            self.per_seed - other.per_seed,
            self.resampled - other.resampled,
            self.trained,
            cross_fitted=self.cross_fitted,
        )

    @property
    def is_share(self) -> bool:
        """Whether the number is a share of observations."""
        return not math.isnan(self.trials)

    @property
    def image_std(self) -> float:
        """Standard deviation (ddof 1) of the mean over seeds when images are resampled."""
        return float(np.std(self.resampled.mean(axis=-1), ddof=1))


class Interval(NamedTuple):
    """A number together with its interval. The ends are NaN if nothing was resampled."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        value: mean over seeds.
        seed_std: standard deviation over S seeds (ddof 1). Each seed has its own split and new
            attackers. NaN for one seed.
        image_std: standard deviation of ``value`` under resampling of images.
        ci_low: lower end of the interval.
        ci_high: upper end of the interval.
        p_value: two-sided p value of the hypothesis that the number equals its no-bias value. It is
            below 1 - level exactly if the interval does not contain the no-bias value. NaN if
            nothing was tested.
        n_seeds: S.
        corrected: ``value`` minus the bias that noise causes; see :func:`summary`.
        error: combined standard deviation over attackers and images.
        error_below: for a share, whose interval is not symmetric, the standard deviation below
            ``value``; else NaN.
        error_above: for a share, the standard deviation above ``value``; else NaN.
        freedom: degrees of freedom of Student's t.
        choice_std: standard deviation (ddof 1) over the choices whose mean is ``value``; see
            :mod:`bias_pipeline.stats.choices`. NaN without choices.
        draws: the draws from which the estimate was computed; None if nothing was resampled.
    """

    value: float
    seed_std: float = math.nan
    image_std: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p_value: float = math.nan
    n_seeds: int = 0
    corrected: float = math.nan
    error: float = math.nan
    error_below: float = math.nan
    error_above: float = math.nan
    freedom: float = math.inf
    choice_std: float = math.nan
    draws: Draws | None = field(default=None, compare=False, repr=False)


SomeEstimate = TypeVar("SomeEstimate", bound=Estimate)  # an estimate, such as a number of a score


@dataclass(frozen=True)
class Bootstrap(Configurable):
    """Resamples images, never captions.

    In every resampling an image counts Poisson(1) times. The number is computed from a hash of the
    image id. The method is the Poisson bootstrap (Hanley and MacGibbon 2006, and Chamandy et al.
    2012). So an image has the same weight for every captioner and metric, and stored draws of two
    results can be subtracted.

    Attributes:
        resamples: how many bootstrap samples are drawn, at least 2.
        level: coverage of the interval, in (0, 1).
        seed: seed of the resampling.
    """

    resamples: Resamples = 1000
    level: InnerShare = 0.95
    seed: Seed = 0

    def estimate(
        self,
        tables: Sequence[ScoreTable],
        combinations: Mapping[Name, Combination],
        keys: UIntArray | None = None,
        *,
        cross_fitted: bool = False,
    ) -> dict[Name, Estimate]:
        """Estimate functions of both sides' scores. Both sides have the same resamplings of images.

        Args:
            tables: the score tables of the sides.
            combinations: by name, functions that take the sides' scores, each (..., S), and return
                (..., S).
            keys: (N,) hashes of all image ids, indexed by the tables' row numbers (default: the row
                numbers).
            cross_fitted: see :class:`Draws`.

        Returns:
            Name to estimate.
        """
        images = ScoreTable.images_by_group(tables)
        aligned = {id(table): table.rows_at(images) for table in tables}  # a table may occur twice

        def evaluate(weights: Float64Array) -> dict[Name, Float64Array]:
            scores = {place: table.per_seed(weights) for place, table in aligned.items()}
            sides = [scores[id(table)] for table in tables]
            return {name: combine(*sides) for name, combine in combinations.items()}

        image_keys = images.astype(np.uint64) if keys is None else keys[images]
        return self.estimate_weighted(image_keys, evaluate, cross_fitted=cross_fitted)

    def estimate_weighted(
        self,
        keys: UIntArray,
        evaluate: Callable[[Float64Array], Mapping[Name, Float64Array]],
        *,
        trained: Callable[[Name], bool] = lambda _: True,
        cross_fitted: bool = False,
    ) -> dict[Name, Estimate]:
        """Estimate any number that can be computed from weighted images.

        Args:
            keys: (I,) hashes of the images' ids (a corpus's ``keys``).
            evaluate: a function of how often each image counts, (B, I), that returns numbers by
                name: (B, S) from attackers and (B, 1) from counts.
            trained: whether a number depends on attackers. Otherwise the number is a count.
            cross_fitted: see :class:`Draws`.

        Returns:
            Name to estimate.
        """
        point = evaluate(np.ones((1, len(keys))))
        drawn = [evaluate(weights) for weights in self.weights(keys)]
        draws = {
            name: Draws(
                values[0],
                np.concatenate([batch[name] for batch in drawn]),
                trained(name),
                cross_fitted=cross_fitted and trained(name),
            )
            for name, values in point.items()
        }
        return {name: summary(_fill_if_rarely_void(d), self.level) for name, d in draws.items()}

    def weights(self, keys: UIntArray) -> Iterator[Float64Array]:
        """Batches (b, I) of how often each image counts, with ``resamples`` rows in all.

        Args:
            keys: (I,) hashes of the images' ids (a corpus's ``keys``).
        """
        together = _number_at_once(len(keys))
        starts = range(0, self.resamples, together)
        if len(keys) * self.resamples > _MOST_STORED:
            for start in starts:
                numbers = range(start, min(start + together, self.resamples))
                yield poisson_counts(keys, numbers, self.seed).astype(np.float64)
        else:
            pairs = _stored_pairs(keys.tobytes(), self.resamples, self.seed)
            for start in starts:
                some = _counts_of_pairs(pairs[start // 2 : (start + together) // 2])
                yield some[: self.resamples - start]


def _number_at_once(n_images: int) -> int:
    """The number of resamplings in a batch, which is always even."""
    return 2 * max(1, _BATCH_BYTES // (16 * max(1, n_images)))


_pairs: dict[tuple[bytes, int, int], UInt8Array] = {}  # the last ones, in 125 MB


def _stored_pairs(keys: bytes, resamples: int, seed: int) -> UInt8Array:
    """(B / 2, I): how often each image counts. One byte stores the counts of two resamplings.

    The result is kept, since most estimates of a run use the same images.
    """
    drawn = keys, resamples, seed
    pairs = _pairs.pop(drawn, None)
    if pairs is None:
        size = -(-resamples // 2) * len(keys) // 8
        while _pairs and size + sum(each.nbytes for each in _pairs.values()) > _MOST_STORED // 2:
            del _pairs[next(iter(_pairs))]
        pairs = _draw_pairs(*drawn)
    _pairs[drawn] = pairs
    return pairs


def _draw_pairs(keys: bytes, resamples: int, seed: int) -> UInt8Array:
    """The counts of :func:`_stored_pairs`; no count is above 12, see `poisson`."""
    images = np.frombuffer(keys, np.uint64)
    pairs = np.empty((-(-resamples // 2), len(images)), np.uint8)
    together = _number_at_once(len(images))
    for start in range(0, resamples, together):
        end = min(start + together, 2 * len(pairs))
        counts = poisson_counts(images, range(start, end), seed)
        pairs[start // 2 : end // 2] = counts[::2] | counts[1::2] << np.uint8(4)
    return pairs


def _counts_of_pairs(pairs: UInt8Array) -> Float64Array:
    counts = np.empty((len(pairs), 2, pairs.shape[1]))
    np.bitwise_and(pairs, np.uint8(15), out=counts[:, 0], casting="unsafe")
    np.right_shift(pairs, np.uint8(4), out=counts[:, 1], casting="unsafe")
    return counts.reshape(-1, pairs.shape[1])


def summary(draws: Draws, level: float = 0.95) -> Estimate:
    """Compute an estimate from draws, without a p value.

    Noise can bias a number, for example a mean of the values above a threshold. Resampling then
    biases the number again by a similar amount. To correct the value, this amount is subtracted
    twice. Textbooks subtract it once, for smooth numbers (Efron and Tibshirani 1993, 10.6). But we
    measured that for signs and thresholds, resampling shows only about half of the bias. The
    interval contains the value and the corrected value, and extends half a width beyond both.
    ``experiments/null_coverage`` measures how often it contains the true value. A count has no
    interval if no resampling changes the count. Scores of attackers are means, which resampling
    does not bias.

    Args:
        draws: the number for each seed and resampling; a share gets Wilson's interval.
        level: coverage of the interval, in (0, 1).
    """
    n_seeds = len(draws.per_seed)
    seed_std = float(np.std(draws.per_seed, ddof=1)) if n_seeds > 1 else math.nan
    means = draws.resampled.mean(axis=-1)
    image_std = draws.image_std
    value = float(draws.per_seed.mean())
    if draws.is_share:
        return estimate_with_ends(
            value, *wilson(value, draws.trials, quantile(level)), image_std, level, draws
        )
    error, freedom = combined_error(
        seed_std,
        image_std * (UNSEEN_TRAINING if draws.cross_fitted else 1),
        n_seeds if draws.trained else 0,
    )
    if draws.cross_fitted:  # seeds repeat on the same images: a small part of the error
        freedom = math.inf
    half = quantile(level, freedom) * error if error > 0 else error
    corrected = value if draws.trained else value - 2 * float(means.mean() - value)
    estimate = Estimate(
        value=value,
        seed_std=seed_std,
        image_std=image_std,
        ci_low=min(value, corrected) - half,
        ci_high=max(value, corrected) + half,
        n_seeds=n_seeds if draws.trained else 0,
        corrected=corrected,
        error=error,
        freedom=freedom,
        draws=draws,
    )
    return estimate if draws.trained else drop_void_interval(estimate)


def share_of(draws: Draws | None, observations: float, images: float) -> Draws:
    """Mark the draws of a count as a share of observations.

    Args:
        draws: the draws of the share.
        observations: the denominator, such as the number of captions.
        images: the largest number of independent images that the observations belong to.
    """
    assert draws is not None
    clusters = min(observations, images)
    share = float(draws.per_seed.mean())
    trials = effective_trials(share, draws.image_std, observations, clusters)
    return replace(draws, trials=trials)


def widen_draws(draws: Draws | None, factor: float) -> Draws:
    """Multiply the distances between draws and the estimate by a factor."""
    assert draws is not None
    return replace(draws, resampled=draws.per_seed + factor * (draws.resampled - draws.per_seed))


def estimate_with_ends(
    value: float, low: float, high: float, image_std: float, level: float, draws: Draws
) -> Estimate:
    """An estimate of a count with a known interval, such as a share; without a p value.

    Args:
        value: the number.
        low: lower end of its interval.
        high: upper end of its interval.
        image_std: standard deviation under resampling of images.
        level: coverage of the interval, in (0, 1).
        draws: the draws from which the estimate was computed.
    """
    z = quantile(level)
    return Estimate(
        value,
        image_std=image_std,
        ci_low=low,
        ci_high=high,
        corrected=value,
        error=(high - low) / (2 * z),
        error_below=(value - low) / z,
        error_above=(high - value) / z,
        draws=draws,
    )


def drop_void_interval(estimate: SomeEstimate) -> SomeEstimate:
    """Remove the interval of an estimate if no resampling changes the number.

    Args:
        estimate: the estimate of a count. A share always keeps its interval.
    """
    if estimate.ci_high - estimate.ci_low > 1e-12:  # less is rounding
        return estimate
    return replace(estimate, ci_low=math.nan, ci_high=math.nan)


def fill_void_resamples(estimate: Estimate, level: float) -> Estimate:
    """Complete an estimate if some resamplings contain no image of the number.

    These resamplings get the seed's number on all images. With ten images, one run in five has such
    a resampling.

    Args:
        estimate: an estimate that has draws.
        level: coverage of the interval, in (0, 1).
    """
    draws = estimate.draws
    if draws is None or not np.isnan(draws.resampled).any():
        return estimate
    return summary(_fill_draws(draws), level)


def _fill_if_rarely_void(draws: Draws) -> Draws:
    """Fill the draws of attackers, unless many resamplings lack tested images."""
    void = np.isnan(draws.resampled).mean()
    return _fill_draws(draws) if draws.trained and void <= MOST_VOID else draws


def _fill_draws(draws: Draws) -> Draws:
    """Replace each NaN by the seed's number on all images."""
    if not np.isnan(draws.resampled).any():
        return draws
    resampled = np.where(np.isnan(draws.resampled), draws.per_seed, draws.resampled)
    return replace(draws, resampled=resampled)


def with_p_value(estimate: SomeEstimate, neutral: float) -> SomeEstimate:
    """Add a p value against the no-bias value, from the same test as the interval.

    With a single seed there is no p value, because the variance over attackers is unknown.

    Args:
        estimate: an estimate that has an ``error``.
        neutral: the value that means no bias.

    Example:
        >>> draws = Draws(np.array([0.3, 0.5]), np.array([[0.2, 0.4], [0.4, 0.6]]))
        >>> tested = with_p_value(summary(draws), 0.4)
        >>> tested.p_value, tested.ci_low < 0.4 < tested.ci_high
        (1.0, True)
    """
    if estimate.n_seeds == 1:
        return estimate
    return replace(estimate, p_value=two_sided_p(estimate, neutral))


def two_sided_p(estimate: Estimate, neutral: float = 0.0) -> float:
    """The two-sided p value of an estimate against a value, in [0, 1]; NaN without ``error``.

    Args:
        estimate: an estimate that has an ``error``.
        neutral: the value that is tested.
    """
    from scipy import special  # imported here, since descriptive commands need no scipy

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
    return max(p_value, sys.float_info.min)  # p = 0 would mean impossible


def quantile(level: float, freedom: float = math.inf) -> float:
    """How many standard errors an interval extends to each side (Student's t or normal).

    Example:
        >>> round(quantile(0.95, math.inf), 2), round(quantile(0.95, 4), 2)
        (1.96, 2.78)
    """
    from scipy import special

    above = (1 + level) / 2
    return float(special.stdtrit(freedom, above) if freedom < math.inf else special.ndtri(above))


def combined_error(seed_std: float, image_std: float, n_seeds: int) -> tuple[float, float]:
    """The combined standard deviation of a mean over seeds, and its degrees of freedom.

    The variance is ``seed_std**2 / S + image_std**2``. Seeds share most of their training images,
    so the spread of seeds alone is too small (Nadeau and Bengio 2003). The term for images
    compensates for this. Student's t has Satterthwaite's degrees of freedom. With a single seed the
    first term is unknown. Then the first term is assumed to equal the second term, since every seed
    tests other images.

    Args:
        seed_std: standard deviation over seeds, or NaN for a single seed.
        image_std: standard deviation under resampling of images.
        n_seeds: S; 0 if nothing was trained.

    Example:
        >>> combined_error(0.0, 1.0, 5), combined_error(math.nan, 1.0, 0)
        ((1.0, inf), (1.0, inf))
        >>> round(combined_error(math.nan, 1.0, 1)[0], 3)
        1.414
    """
    if n_seeds == 1:
        return math.sqrt(2) * image_std, math.inf
    of_seeds = 0.0 if n_seeds == 0 else seed_std**2 / n_seeds
    variance = of_seeds + image_std**2
    freedom = (n_seeds - 1) * (variance / of_seeds) ** 2 if of_seeds > 0 else math.inf
    return math.sqrt(variance), freedom
