"""What all counting metrics share: counts of images, their sums, intervals.

A counting metric turns a corpus into tables with a row an image, and computes numbers from the
tables' sums (:class:`CountSpec`). Resampling images is then a matrix product of weights and tables.
Nothing is trained, and no seed is used.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.hashing import UIntArray, hash_ids, random_words
from bias_pipeline.metrics.base import Metric, Part, Score
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import (
    Bootstrap,
    Estimate,
    share_of,
    summary,
    two_sided_p,
    widened,
)
from bias_pipeline.stats.compare import paired_difference

Sums = Mapping[str, Float64Array]
Lines = Mapping[str, Sequence[Mapping[str, object]]]  # tables by name

COUNT = "count"
SHARE = (0.0, 1.0)  # the range of a number that is not a difference
MOST_BUNDLES = 8_192
FEWEST_BUNDLES = 1_024
_CELLS = 20_000_000  # of all tables of bundles together
_ABSENT = Estimate(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, n_seeds=0)


@dataclass(frozen=True, eq=False)
class ValueBasis:
    """What a number rests on."""

    images: BoolArray  # (N,) the images
    side: str = "model"  # whose captions its neutral rate describes
    unit: str = "fraction"  # see `Part`; a `count` has no interval
    range: tuple[float, float] | None = None  # see there
    # (N,) the images of which `images` are a share, its coverage; None: those that the metric is
    # about
    among: BoolArray | None = None


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Noise of mean 0 that is added to the sums of a table in resamples, not in the estimate.

    Without it an event that never happened happens in no resample either, as if its chance were
    known to be 0.
    """

    amounts: Float64Array  # (C,) scale of each sum's noise; the noise is this times Poisson(1) - 1
    name: str  # of what is summed, such as a digest of captions; equal names have equal noise

    @property
    def keys(self) -> UIntArray:
        """(C,) keys from which the noise of each sum is drawn."""
        return hash_ids(f"{self.name}:{column}" for column in range(len(self.amounts)))


@dataclass(frozen=True, eq=False)
class CountSpec:
    """What a metric counts, and the numbers that it computes from the sums."""

    tables: Mapping[str, sparse.csr_array]  # name to (N, C) counts of each image
    # Sums of the tables, (B, C) each, to named numbers (B,)
    numbers: Callable[[Sums], Mapping[PartName, Float64Array]]
    about: ValueBasis  # what a number rests on that is not in `parts`
    # Name of a number to what it rests on
    parts: Mapping[PartName, ValueBasis] = field(default_factory=dict)
    audit: Mapping[str, object] = field(default_factory=dict)  # for the manifest
    notes: Sequence[str] = ()  # for the reader
    lines: Lines = field(default_factory=dict)  # further tables by name
    # Sums of the tables to how many observations each number is a share of, (B,); these have the
    # intervals of shares
    observations: Callable[[Sums], Mapping[PartName, Float64Array]] = lambda sums: {}
    # Name of a number to the two shares of which it is the difference
    differences: Mapping[PartName, tuple[PartName, PartName]] = field(default_factory=dict)
    # Name of the largest gap between groups to how many groups there are; its interval is corrected
    # for all pairs of them (Bonferroni)
    chosen_from: Mapping[PartName, int] = field(default_factory=dict)
    # Name of a table to the noise of its sums under resampling
    smoothing: Mapping[str, Smoothing] = field(default_factory=dict)
    # Name of a number to the number whose p against 0 it takes over
    tested: Mapping[PartName, PartName] = field(default_factory=dict)
    # Name of a number to the factor by which resampling underestimates its spread
    widening: Mapping[PartName, float] = field(default_factory=dict)
    # Name of a number to its p, where the metric has a test of its own
    p_values: Mapping[PartName, float] = field(default_factory=dict)


class ResamplingBlocks:
    """Groups of images that are resampled as a whole.

    A hash of its id puts each image into a bundle. The sums of bundles vary as those of images do,
    so intervals have the same expected width as when images are resampled, and a million images
    cost no more. An image is in the same bundle, with the same weights, whatever captioner is
    scored and however many images it describes.

    Args:
        keys: (N,) hashes of all images' ids.

    Attributes:
        keys: one for each bundle, to resample it by.
    """

    def __init__(self, rows: IntArray, keys: UIntArray, n_columns: int) -> None:
        most = MOST_BUNDLES
        while most > FEWEST_BUNDLES and most * n_columns > _CELLS:
            most //= 2  # by halves, so that tables of similar size get equally many
        of_image = (random_words("bundle", 0, keys[rows]) % np.uint64(most)).astype(np.int64)
        used, self.bundle = np.unique(of_image, return_inverse=True)
        self.rows, self.keys = rows, used.astype(np.uint64)

    def sums(self, table: sparse.csr_array) -> Float64Array:
        """(number of bundles, C) sums of a table's rows."""
        bundle = np.zeros(table.shape[0], np.int64)
        bundle[self.rows] = self.bundle
        cell = np.repeat(bundle * table.shape[1], np.diff(table.indptr)) + table.indices
        sums = np.bincount(cell, table.data, len(self.keys) * table.shape[1])
        return np.asarray(sums, np.float64).reshape(len(self.keys), table.shape[1])


@dataclass(eq=False)
class CountingMetric(Metric):
    """A metric that counts."""

    attribute: Attribute  # whose groups are compared
    stats: Bootstrap  # how intervals are made
    _: KW_ONLY
    # A preset of the attribute whose words name the groups; None, or one that the attribute does
    # not have: its own words
    words: str | None = None

    def see(self, corpus: Corpus) -> CorpusView:
        """The groups that the metric reads."""
        return CorpusView(corpus, self.attribute, self.words)

    @abstractmethod
    def tally(self, view: CorpusView) -> CountSpec:
        """The tables and numbers of the metric."""

    def rests_on_names(self, part: PartName) -> bool:
        """Whether a number is about the groups that captions name.

        Such a number is absent if captions name almost no group: silence is no merit.
        """
        del part
        return True

    def check(self, view: CorpusView) -> None:
        """Refuse a corpus in which nothing can be counted."""
        view.check_captioned()

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See the class; nothing is trained."""
        del splits
        view = self.see(corpus)
        self.check(view)
        tally = self.tally(view)
        estimates = _estimates(tally, corpus.keys, self.stats)

        rests_on = _ImagesBehind(view)
        scope = self.scope(corpus)
        about = {name: tally.parts.get(name, tally.about) for name in estimates}
        absent = {
            name: why
            for name, about_part in about.items()
            if self.rests_on_names(name) and (why := rests_on.too_few_named(about_part.side))
        }
        absent |= {
            name: absent[side]
            for name, sides in tally.differences.items()
            for side in sides
            if side in absent
        }
        parts: dict[str, Part] = {}
        for name, about_part in about.items():
            unknown = name in absent or math.isnan(estimates[name].value)
            estimate = _ABSENT if unknown else estimates[name]
            n_images = rests_on.n_images(about_part.images)
            parts[name] = Part(
                estimate=_uncertain(estimate) if about_part.unit == COUNT else estimate,
                unit=about_part.unit,
                range=about_part.range,
                n_images=n_images,
                coverage=n_images
                / rests_on.n_images(scope if about_part.among is None else about_part.among),
                neutral_rate=rests_on.neutral_rate(about_part),
            )
        notes = [*corpus.notes, *tally.notes, *dict.fromkeys(absent.values())]
        tables = {**self.caption_tables(view), **tally.lines}
        return Score(parts, audit=tally.audit, notes=notes, tables=tables)

    def caption_tables(self, view: CorpusView) -> Lines:
        """Further tables of captions that numbers rest on, by name."""
        del view
        return {}


@dataclass(eq=False)
class TaskMetric(CountingMetric):
    """A counting metric of groups and tasks."""

    task: TaskVocabulary  # whose tasks are T
    _: KW_ONLY
    exclude_tasks: Sequence[str] = ("person",)  # tasks left out; every image shows a person

    def __post_init__(self) -> None:
        """Check the names of tasks."""
        check_excluded(self.exclude_tasks, self.task)

    def see(self, corpus: Corpus) -> CorpusView:
        """The groups and tasks that the metric reads."""
        return CorpusView(corpus, self.attribute, self.words, self.task, self.exclude_tasks)


def check_known(key: str, value: str, known: Sequence[str] | Mapping[str, object]) -> None:
    """Refuse a name that is none of the known ones."""
    if value not in known:
        raise UsageError(f"metric.{key}: {value!r} is unknown; {did_you_mean(value, known)}")


def row_of(numerator: str | None, view: CorpusView) -> int:
    """The row of the group that a ratio is about: the named group, else the first labelled one."""
    if numerator is None:
        return 0
    check_known("numerator", numerator, view.groups)
    return view.groups.index(numerator)


def check_excluded(names: Sequence[str], task: TaskVocabulary) -> None:
    """Refuse to leave out a task that the vocabulary does not have."""
    for name in names:
        check_known("exclude_tasks", name, task.tasks)


def least_share(min_support: float, n_images: int) -> float:
    """The share of captions that must name a task.

    Example:
        >>> least_share(0.005, 8000), least_share(40, 8000)
        (0.005, 0.005)
    """
    return min_support if min_support < 1 else min_support / max(n_images, 1)


class _ImagesBehind:
    """Size and neutral rate of the images of numbers, computed once for each set of images.

    Hundreds of numbers share a few sets, which are recognised by identity: to compare a million
    images for each number would cost more than the numbers.
    """

    def __init__(self, view: CorpusView) -> None:
        self.view = view
        self._sets: dict[
            int, tuple[BoolArray, int]
        ] = {}  # with the mask, so that its id is not reused
        self._rates: dict[tuple[int, str], float] = {}
        self.too_few_named = cache(view.too_few_named)

    def n_images(self, images: BoolArray) -> int:
        """How many of (N,) flags are set."""
        key = id(images)
        if key not in self._sets:
            self._sets[key] = (images, int(images.sum()))
        return self._sets[key][1]

    def neutral_rate(self, about: ValueBasis) -> float:
        """See :meth:`CorpusView.neutral_rate`."""
        self.n_images(about.images)
        key = (id(about.images), about.side)
        if key not in self._rates:
            self._rates[key] = self.view.neutral_rate(about.side, about.images)
        return self._rates[key]


def _estimates(tally: CountSpec, keys: UIntArray, stats: Bootstrap) -> dict[PartName, Estimate]:
    used = sum((np.diff(table.indptr) for table in tally.tables.values()), np.zeros(1, np.int64))
    rows = np.flatnonzero((used > 0) | tally.about.images)
    bundles = ResamplingBlocks(rows, keys, sum(t.shape[1] for t in tally.tables.values()))
    sums = {name: bundles.sums(table) for name, table in tally.tables.items()}
    noise = [smoothing.keys for smoothing in tally.smoothing.values()]

    def evaluate(weights: Float64Array) -> dict[PartName, Float64Array]:
        of_images, *of_noise = np.split(
            weights,
            np.cumsum([len(keys_of_part) for keys_of_part in (bundles.keys, *noise)][:-1]),
            axis=1,
        )
        totals = {name: of_images @ table for name, table in sums.items()}
        for (name, smoothing), drawn in zip(tally.smoothing.items(), of_noise, strict=True):
            totals[name] = totals[name] + (drawn - 1) * smoothing.amounts
        numbers = tally.numbers(totals)
        return {name: np.asarray(values)[:, None] for name, values in numbers.items()}

    estimates = stats.estimate_weighted(
        np.concatenate([bundles.keys, *noise]), evaluate, trained=lambda _: False
    )
    wider = {
        name: summary(widened(estimates[name].draws, factor), stats.level)
        for name, factor in tally.widening.items()
    }
    tested = {
        name: replace(estimates[name], p_value=two_sided_p(estimates[other]))
        for name, other in tally.tested.items()
    }
    gaps = {
        name: summary(draws, _level_of_pairs(stats.level, n_groups))
        for name, n_groups in tally.chosen_from.items()
        if (draws := estimates[name].draws) is not None
    }
    made = estimates | wider | tested | gaps | _shares(tally, sums, estimates, stats.level)
    return made | {name: replace(made[name], p_value=p) for name, p in tally.p_values.items()}


def _shares(
    tally: CountSpec,
    sums: Mapping[str, Float64Array],
    estimates: Mapping[PartName, Estimate],
    level: float,
) -> dict[PartName, Estimate]:
    """The numbers that are shares, or differences of two, with the intervals of shares."""
    totals = {name: table.sum(axis=0, keepdims=True) for name, table in sums.items()}
    draws = {
        name: share_of(
            estimates[name].draws,
            float(observations[0]),
            float(tally.parts.get(name, tally.about).images.sum()),
        )
        for name, observations in tally.observations(totals).items()
        if not math.isnan(estimates[name].value)
    }
    shares = {name: summary(of_part, level) for name, of_part in draws.items()}
    for name, (one, two) in tally.differences.items():
        if one in draws and two in draws:
            corrected = _level_of_pairs(level, tally.chosen_from.get(name, 2))
            difference = paired_difference(draws[one], draws[two], corrected)
            shares[name] = replace(difference, p_value=math.nan)
    return shares


def _level_of_pairs(level: float, n_groups: int) -> float:
    """The level at which the intervals of all pairs of groups together have this one."""
    return 1 - (1 - level) / math.comb(n_groups, 2)


def _uncertain(estimate: Estimate) -> Estimate:
    """A count without an interval: resampling images does not show its uncertainty."""
    nan = math.nan
    return replace(estimate, image_std=nan, ci_low=nan, ci_high=nan)


def indicators(counts: Float64Array) -> IntArray:
    """1 where a count is above 0."""
    return (counts > 0).astype(np.int64)
