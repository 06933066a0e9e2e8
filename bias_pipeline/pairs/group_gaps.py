"""Measures how much a share differs between the groups of sets: difference, interval, p, power."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse, special

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.pairs.contrasts import Contrasts
from bias_pipeline.stats.bootstrap import Estimate, quantile
from bias_pipeline.stats.compare import holm
from bias_pipeline.stats.shares import difference_ends, wilson
from bias_pipeline.stats.sign_flips import FEWEST_NORMAL, FEWEST_SETS, SignFlips, mean_p

_POWER = 0.8  # a difference is "usually" found with this chance


@dataclass(frozen=True, kw_only=True)
class GroupGap(Estimate):
    """How much a class of captions differs between the groups, as a mean over sets.

    The value is the second group minus the first, minus the annotators' difference if it is known.
    The p comes from flipped signs. The p is NaN if too few sets differ.
    """

    name: str
    first: float  # the mean of the first group
    second: float  # the mean of the second group
    misses: float  # the test usually misses smaller differences
    by_set: Mapping[str, float]  # set to its difference
    adjusted_p: float = math.nan  # after Holm over classes, for all attributes and pairs of groups

    @property
    def n_differing(self) -> int:
        return sum(abs(value) > 1e-12 for value in self.by_set.values())


@dataclass(frozen=True)
class MeasuredGap:
    """The share of captions with a word, or the mean of a measure of pictures, by group."""

    name: str
    first: float  # the mean of the first group; for a word, the share of its captions
    second: float
    p_value: float  # for words corrected over all (Westfall, Young)


def group_gap(
    name: str,
    contrasts: Contrasts,
    values: Float64Array,
    captions: IntArray,
    *,
    is_share: bool = True,
    level: float = 0.95,
    people: Float64Array | None = None,
) -> GroupGap:
    """The difference between the groups in one class.

    ``values`` has the (N,) means of pictures. ``people`` has the means of annotators' captions,
    whose difference is subtracted. ``captions`` (N,) is the number of captions of each picture.
    """
    first, second = (contrasts.of_sets(group, values) for group in (0, 1))
    differences = second - first
    if people is not None:
        theirs = [contrasts.of_sets(group, people) for group in (0, 1)]
        differences = differences - (theirs[1] - theirs[0])
    n_differing = int((np.abs(differences) > 1e-12).sum())
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    value, freedom = float(differences.mean()), len(differences) - 1
    half = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    low, high = value - half, value + half
    needed = float(special.stdtrit(freedom, 0.975) + special.stdtrit(freedom, _POWER))
    misses = needed * error
    if is_share and n_differing < FEWEST_NORMAL:
        pictures = np.concatenate([contrasts.first, contrasts.second])
        a_set = float(captions[pictures].sum()) / 2 / len(contrasts)  # of a group, on average
        ends = share_difference_ends(second, first, a_set, quantile(level))
        plain = float((second - first).mean())
        low, high = min(low, value + ends[0] - plain), max(high, value + ends[1] - plain)
        misses = max(misses, needed / 2 / quantile(level) * (high - low))
    enough = n_differing >= FEWEST_SETS
    return GroupGap(
        value=value,
        ci_low=low,
        ci_high=high,
        p_value=mean_p(contrasts.keys, differences) if enough else math.nan,
        name=name,
        first=float(first.mean()),
        second=float(second.mean()),
        misses=misses,
        by_set=dict(zip(contrasts.sets, differences.tolist(), strict=True)),
    )


def share_difference_ends(
    first: Float64Array, second: Float64Array, captions: float, z: float
) -> tuple[float, float]:
    """The interval of a difference of means of (J,) shares, which holds even if few sets differ.

    The interval is by Newcombe's method, from the ends of Wilson's intervals at ``z`` standard
    errors. The number of trials that a mean is worth follows from its variance over sets. A mean is
    worth at least one trial per set and at most one per caption.
    """
    n_sets = len(first)
    ends = []
    for shares in (first, second):
        share, variance = float(shares.mean()), float(shares.var(ddof=1)) / n_sets
        trials = share * (1 - share) / variance if variance > 0 else float(n_sets)
        trials = min(max(trials, n_sets), n_sets * max(captions, 1.0))
        ends.append((share, *wilson(share, trials, z)))
    spread = first.std() * second.std()
    correlation = 0.0
    if spread > 0:
        correlation = float(np.mean((first - first.mean()) * (second - second.mean())) / spread)
    return difference_ends(ends[0], ends[1], float(np.clip(correlation, -1, 1)))


def adjust_p_values(gaps: Sequence[GroupGap], n_families: int) -> list[GroupGap]:
    """The gaps with p corrected by Holm's method and multiplied by the number of test families."""
    each = holm([gap.p_value for gap in gaps])
    return [
        replace(gap, adjusted_p=float(np.minimum(1.0, n_families * p)))
        for gap, p in zip(gaps, each, strict=True)
    ]


def word_gaps(
    contrasts: Contrasts, vocabulary: Sequence[str], words: sparse.csr_array
) -> list[MeasuredGap]:
    """The words whose (N, V) shares differ in six sets or more, clearest difference first.

    The t of a word is the sum of its differences, divided by the root of their sum of squares. The
    p of a word says how often, under flipped signs, the largest t of all words is at least as large
    (Westfall and Young 1993).
    """
    differences = contrasts.differences(words)
    differences.data[np.abs(differences.data) < 1e-12] = 0
    differences.eliminate_zeros()
    often = np.flatnonzero(np.diff(sparse.csc_array(differences).indptr) >= FEWEST_SETS)
    if not len(often):
        return []
    table = sparse.csr_array(differences[:, often].T)
    lengths = np.sqrt(np.asarray((table * table).sum(axis=1)).ravel())

    def largest(signs: Float64Array) -> Float64Array:
        t: Float64Array = np.abs(table @ signs.T) / lengths[:, None]
        return t.max(axis=0)

    t = np.abs(np.asarray(table.sum(axis=1)).ravel()) / lengths
    flips = SignFlips(contrasts.keys)
    null = flips.null(largest)
    p_values = [float(flips.p_value(float(value), null)) for value in t]
    first, second = (
        np.asarray((contrasts.means(group, words.shape[0]) @ words).mean(axis=0)).ravel()
        for group in (0, 1)
    )
    gaps = [
        MeasuredGap(vocabulary[word], float(first[word]), float(second[word]), p)
        for word, p in zip(often.tolist(), p_values, strict=True)
    ]
    order = sorted(range(len(gaps)), key=lambda k: (gaps[k].p_value, -t[k], gaps[k].name))
    return [gaps[k] for k in order]
