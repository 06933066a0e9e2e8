"""Measures how much scores and conclusions depend on the attacker and on the metric.

There are four measures. The first is the coefficient of variation of a captioner's scores over
encoders. The second says how much lower this coefficient is for one metric than for another (both
DBAC, section 5.3, Tables 5 and 6). The third is the conflict score, which is the share of
captioners for which only one of two classifiers finds amplification. The fourth is the correlation
of the two rankings (both ImageCaptioner2, section 5.5.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.errors import DataError, UsageError, did_you_mean, inflect
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.report.compare import LEVEL
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import values_of, with_settings
from bias_pipeline.stats.bootstrap import Draws, Interval
from bias_pipeline.stats.compare import FEWEST_CORRELATED

Stored = Mapping[str, Mapping[str, Draws]]

SETTINGS = ("encoder", "head", "masking", "alignment", "scoring")
KEYS = ("metric", *SETTINGS)  # settings that may always vary
OVER = ("encoder", "head")  # settings that vary by default


class Setting(NamedTuple):
    """The settings that all variants have. A setting is empty if it varies or is not used."""

    headline: str  # the number, such as `lic` or `dbac a_to_t`
    attribute: str = ""  # whose groups
    dataset: str = ""  # its name
    encoder: str = ""  # the attackers' encoder; this and the other settings are as in rows
    head: str = ""  # see rows
    masking: str = ""  # see rows
    alignment: str = ""  # see rows
    scoring: str = ""  # see rows
    others: str = ""  # further settings in which runs differ, see `settings`

    def __str__(self) -> str:
        return " ".join(filter(None, self))

    def rivals(self, other: Setting) -> bool:
        """Whether ``other`` is another number for the same captions under the same settings."""
        ours = (self.attribute, self.dataset, self.masking, self.alignment)
        theirs = (other.attribute, other.dataset, other.masking, other.alignment)
        return self.headline != other.headline and ours == theirs


@dataclass(frozen=True, eq=False)
class Variants:
    """The scores of C captioners in V variants."""

    setting: Setting  # what was scored
    captioners: tuple[str, ...]  # C names
    variants: tuple[str, ...]  # V names, such as `lstm mlp3`
    values: Float64Array  # (C, V) scores
    neutral: Float64Array  # (V,) the no-bias value
    # (B, C, V) the scores under B resamplings of the images; if these are not stored, B is 0 and
    # intervals are NaN
    resampled: Float64Array
    absent: tuple[str, ...] = ()  # captioners that are left out, since a variant lacks them

    def select(self, captioners: Sequence[str], variants: Sequence[str]) -> Variants:
        """The scores of some captioners in some variants, in the given order."""
        lines = [self.captioners.index(name) for name in captioners]
        columns = [self.variants.index(name) for name in variants]
        return replace(
            self,
            captioners=tuple(captioners),
            variants=tuple(variants),
            values=self.values[np.ix_(lines, columns)],
            neutral=self.neutral[columns],
            resampled=self.resampled[:, lines][:, :, columns],
        )

    @classmethod
    def of_table(cls, name: str, table: Mapping[str, Mapping[str, float]]) -> Variants:
        """Published scores by captioner and variant, with 0 as the no-bias value.

        Example:
            >>> Variants.of_table("x", {"sat": {"a": 1.0, "b": 2.0}}).variants
            ('a', 'b')
        """
        variants = tuple(next(iter(table.values())))
        values = np.array([[scores[variant] for variant in variants] for scores in table.values()])
        nothing = np.empty((0, *values.shape))
        neutral = np.zeros(len(variants))
        return cls(Setting(name), tuple(table), variants, values, neutral, nothing)


@dataclass(frozen=True)
class _Cell:
    row: Row
    neutral: float
    draws: Draws | None

    def resampled_means(self) -> Float64Array:
        """(B,): the mean over seeds in each resampling."""
        return np.empty(0) if self.draws is None else self.draws.resampled.mean(axis=1)


def variants(
    results: Sequence[Result], draws: Stored, over: Sequence[str], fewest: int = 2
) -> list[Variants]:
    """A table of scores for every headline with two variants and ``fewest`` captioners."""
    labelled = with_settings(results)
    further = dict.fromkeys(key for result in labelled for key in result.settings)
    known = list(dict.fromkeys([*KEYS, *further]))
    for key in over:
        if key not in known:
            raise UsageError(
                f"--over {key}: the runs do not differ in it; {did_you_mean(key, known)}"
            )
    alike = [key for key in further if key not in KEYS and not _varies(key, over)]
    groups: dict[Setting, dict[tuple[str, str], _Cell]] = {}
    for result in labelled:
        for row in result.rows:
            if row.part in HEADLINES and np.isfinite(row.value):
                group_cells = groups.setdefault(_shared_setting(row, result, over, alike), {})
                drawn = draws.get(row.run_id, {}).get(row.part)
                cell = _Cell(row, result.neutral(row.part), drawn)
                _add(group_cells, (row.captioner, _variant(row, result, over)), cell)
    made = [_variants(setting, cells) for setting, cells in groups.items()]
    return [table for table in made if len(table.variants) > 1 and len(table.captioners) >= fewest]


def _varies(key: str, over: Sequence[str]) -> bool:
    """Whether a setting varies or belongs to a setting that varies.

    If metrics vary, every setting of a metric counts as varying, too.
    """
    return "metric" in over or key in over or key.partition(".")[0] in over


def _shared_setting(row: Row, result: Result, over: Sequence[str], alike: Sequence[str]) -> Setting:
    """The settings that all variants share. If metrics vary, the settings of metrics vary too.

    A setting that differs between runs is read from every run.
    """
    if "metric" in over:
        return Setting("", row.attribute, row.dataset)
    fixed = {key: str(getattr(row, key)) for key in SETTINGS if key not in over}
    values = values_of(result) | dict(result.settings)
    others = " ".join(f"{key}={values[key]}" for key in alike if key in values)
    return Setting(_headline(row), row.attribute, row.dataset, **fixed, others=others)


def _headline(row: Row) -> str:
    return row.metric if row.part == "score" else f"{row.metric} {row.part}"


def _variant(row: Row, result: Result, over: Sequence[str]) -> str:
    within = [key for key in result.settings if key not in over and _varies(key, over)]
    return (
        " ".join(filter(None, (_part_of_name(row, result, key) for key in (*over, *within))))
        or "none"
    )


def _part_of_name(row: Row, result: Result, key: str) -> str:
    if key == "metric":
        return _headline(row)
    if key in SETTINGS:
        return str(getattr(row, key))
    return f"{key}={result.settings[key]}" if key in result.settings else ""


def _add(cells: dict[tuple[str, str], _Cell], key: tuple[str, str], cell: _Cell) -> None:
    first = cells.setdefault(key, cell)
    if first.row.run_id != cell.row.run_id:
        raise DataError(
            f"{first.row.run_id} and {cell.row.run_id} are two runs of {key[0]} that do not differ "
            f"in what is compared ({key[1]}); keep them in separate folders"
        )


def _variants(setting: Setting, cells: Mapping[tuple[str, str], _Cell]) -> Variants:
    names = tuple(dict.fromkeys(variant for _, variant in cells))
    everyone = tuple(dict.fromkeys(captioner for captioner, _ in cells))
    whole = tuple(name for name in everyone if all((name, variant) in cells for variant in names))
    grid = [[cells[name, variant] for variant in names] for name in whole]
    return Variants(
        setting=setting,
        captioners=whole,
        variants=names,
        values=np.reshape([[cell.row.value for cell in line] for line in grid], (-1, len(names))),
        neutral=np.array([cell.neutral for cell in grid[0]]) if grid else np.zeros(len(names)),
        resampled=_resampled_scores(grid),
        absent=tuple(name for name in everyone if name not in whole),
    )


def _resampled_scores(grid: Sequence[Sequence[_Cell]]) -> Float64Array:
    """(B, C, V): scores under resampling, empty unless all scores have the same resamplings."""
    drawn = [[cell.resampled_means() for cell in line] for line in grid]
    sizes = {len(numbers) for line in drawn for numbers in line}
    width = len(grid[0]) if grid else 0
    if len(sizes) != 1:
        return np.empty((0, len(grid), width))
    return np.moveaxis(np.array(drawn), -1, 0)


Statistic = Callable[[Float64Array], Float64Array]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Coefficients of variation of one number."""

    scores: Variants  # the scores from which the coefficients are computed
    per_captioner: dict[str, Interval]  # coefficients by captioner
    mean: Interval  # over captioners
    left_out: tuple[str, ...] = ()  # variants under which only one of two numbers was scored

    @property
    def one_sided(self) -> bool:
        """Whether an interval does not contain its number.

        Noise from images adds to the spread over attackers, so resampled coefficients are larger.
        """
        return any(
            not interval.low <= interval.value <= interval.high
            for interval in (*self.per_captioner.values(), self.mean)
            if not np.isnan([interval.value, interval.low]).any()
        )


def coefficient_of_variation(values: Float64Array) -> Float64Array:
    """The standard deviation (ddof 1) divided by the absolute mean, along the last axis.

    The coefficient does not depend on the unit, and grows without bound as the mean approaches 0.
    The coefficient is NaN for fewer than two values or if the mean is 0.

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
    """Coefficients of variation over variants, with percentile intervals over images."""
    each = with_intervals(scores, coefficient_of_variation)
    mean = with_intervals(scores, _mean_of(coefficient_of_variation))
    return Sensitivity(scores, dict(zip(scores.captioners, each, strict=True)), mean[0])


def reduction(scores: Variants, other: Variants) -> Sensitivity:
    """How much lower coefficients are than another number's coefficients, as a mean share.

    The mean is over the captioners' reductions, as in the last rows of the paper's tables. Only
    captioners and variants with both numbers count. The result is NaN if the other number does not
    vary.

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
    both = _side_by_side(
        scores.select(shared, shared_variants), other.select(shared, shared_variants)
    )
    width = len(shared_variants)

    def reduce_coefficients(values: Float64Array) -> Float64Array:
        one, two = values[..., :width], values[..., width:]
        return 1 - share(coefficient_of_variation(one), coefficient_of_variation(two))

    each = with_intervals(both, reduce_coefficients)
    mean = with_intervals(both, _mean_of(reduce_coefficients))
    unpaired = [name for name in (*scores.variants, *other.variants) if name not in shared_variants]
    return Sensitivity(both, dict(zip(shared, each, strict=True)), mean[0], tuple(unpaired))


def _mean_of(statistic: Statistic) -> Statistic:
    return lambda values: statistic(values).mean(axis=-1, keepdims=True)


def with_intervals(scores: Variants, statistic: Statistic) -> list[Interval]:
    """A statistic that maps (..., C, V) scores to (..., K), with percentile intervals."""
    values = statistic(scores.values)
    if not len(scores.resampled):
        return [Interval(float(value)) for value in values]
    drawn = statistic(scores.resampled)
    return [_interval(*column) for column in zip(values, drawn.T, strict=True)]


def _interval(value: float, drawn: Float64Array) -> Interval:
    """A number with its percentile interval. Resamples with NaN do not count."""
    there = drawn[~np.isnan(drawn)]
    if not len(there):
        return Interval(float(value))
    low, high = np.quantile(there, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(value), float(low), float(high))


def _side_by_side(one: Variants, two: Variants) -> Variants:
    """Two numbers of the same captioners, the columns of the first before the second."""
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
    """How far two variants agree."""

    first: str  # the name of one variant
    second: str  # the name of the other
    # Share of captioners that only one of the variants calls biased, in [0, 1]
    conflicts: Interval
    conflicting: tuple[str, ...]  # the names of these captioners
    # Correlation of scores, in [-1, 1]; NaN for fewer than three captioners, since two points
    # always lie on a line
    pearson: Interval
    spearman: Interval  # of ranks
    kendall: Interval  # tau-b


def conflicts(values: Float64Array, neutral: Float64Array) -> BoolArray:
    """(..., C) flags: true where the two variants in (..., C, 2) scores disagree about bias.

    Two variants disagree if one score is above the no-bias value and the other is not.

    Example:
        >>> conflicts(np.array([[3.7, -0.8], [5.1, 0.3]]), np.zeros(2)).tolist()
        [True, False]
    """
    above = values > neutral
    disagree: BoolArray = above[..., 0] != above[..., 1]
    return disagree


def agreements(scores: Variants) -> list[Agreement]:
    """How far each two variants agree, with percentile intervals over images."""
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
    intervals = with_intervals(scores, lambda values: _numbers(values, scores.neutral))
    disagree = conflicts(scores.values, scores.neutral)
    return Agreement(
        scores.variants[0],
        scores.variants[1],
        intervals[0],
        tuple(name for name, conflict in zip(scores.captioners, disagree, strict=True) if conflict),
        *intervals[1:],
    )


def _numbers(values: Float64Array, neutral: Float64Array) -> Float64Array:
    """(..., 4): conflict score, Pearson, Spearman and Kendall, from (..., C, 2) scores."""
    share = conflicts(values, neutral).mean(axis=-1)
    if values.shape[-2] < FEWEST_CORRELATED:
        absent = np.full_like(share, np.nan)
        return np.stack([share, absent, absent, absent], axis=-1)
    from scipy import stats  # SciPy is slow to import

    ranks = stats.rankdata(values, axis=-2)
    return np.stack([share, _pearson(values), _pearson(ranks), _kendall(values)], axis=-1)


def _pearson(values: Float64Array) -> Float64Array:
    """(...): the correlation of both columns of (..., C, 2) numbers; NaN if one is constant."""
    centred = values - values.mean(axis=-2, keepdims=True)
    return _cosine(centred[..., 0], centred[..., 1])


def _kendall(values: Float64Array) -> Float64Array:
    """(...): tau-b, how often both columns rank two captioners alike, corrected for ties."""
    one, two = np.triu_indices(values.shape[-2], 1)
    signs = np.sign(values[..., one, :] - values[..., two, :])
    return _cosine(signs[..., 0], signs[..., 1])


def _cosine(one: Float64Array, two: Float64Array) -> Float64Array:
    lengths = np.sqrt((one**2).sum(axis=-1) * (two**2).sum(axis=-1))
    product = (one * two).sum(axis=-1)
    return np.divide(product, lengths, out=np.full_like(lengths, np.nan), where=lengths > 0)


def _agreement_table(caption: str, what: str, pairs: Sequence[Agreement]) -> Table:
    head = [what, "conflicts", "Pearson", "Spearman", "Kendall", "who"]
    rows: list[list[Cell]] = [
        [
            f"{pair.first}, {pair.second}",
            _number(pair.conflicts, fraction=True),
            *(_number(one) for one in (pair.pearson, pair.spearman, pair.kendall)),
            ", ".join(pair.conflicting),
        ]
        for pair in pairs
    ]
    return Table(caption, head, rows)


def _number(interval: Interval, *, fraction: bool = False) -> NumberCell:
    low, high = (None, None) if math.isnan(interval.low) else (interval.low, interval.high)
    return NumberCell(interval.value, low, high, fraction=fraction, digits=1 if fraction else 2)


def print_title(scores: Variants) -> None:
    """Print the scored number, the variants, and the captioners that are left out."""
    print_out(
        f"{scores.setting} · {inflect(len(scores.variants), 'variants')}: "
        f"{', '.join(scores.variants)}"
    )
    if scores.absent:
        print_out(f"left out, since a variant lacks them: {', '.join(scores.absent)}")


def print_sensitivity(result: Sensitivity, what: str, *, fraction: bool = False) -> None:
    """Print a table of captioners and coefficients; ``what`` is the name of their column."""
    numbers = {**result.per_captioner, "mean": result.mean}
    rows: list[list[Cell]] = [
        [name, _number(one, fraction=fraction)] for name, one in numbers.items()
    ]
    print_table(Table("", ["captioner", what], rows))
    if result.one_sided:
        print_out(
            "some intervals do not include their number: noise of images adds to the spread of "
            "attackers, so resampled coefficients are higher"
        )
    print_out()


def print_agreements(pairs: Sequence[Agreement]) -> None:
    """Print how far attackers, or metrics, agree with each other."""
    print_table(_agreement_table("", "pair", pairs))
    print_out()
