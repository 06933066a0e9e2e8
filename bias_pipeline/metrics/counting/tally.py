"""What all counting metrics share: what images and captions say, sums over images, intervals.

A counting metric turns a corpus into tables with a row an image and says which numbers their sums
make (:class:`Tally`). Resampling images is then a matrix product of weights and tables. Nothing is
trained and no seed plays a part.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.captions import offsets
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.hashing import UIntArray, keys_of, stream
from bias_pipeline.metrics.base import Metric, Part, Score
from bias_pipeline.metrics.parts import HEADLINES, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.stats.bootstrap import (
    Bootstrap,
    Estimate,
    share_of,
    spanned,
    summary,
    two_sided_p,
    widened,
)
from bias_pipeline.stats.compare import paired_difference

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Sums = Mapping[str, FloatArray]
Lines = Mapping[str, Sequence[Mapping[str, object]]]  # tables by name

COUNT = "count"
SHARE = (0.0, 1.0)  # the range of what is no difference
MOST_BUNDLES = 8_192
FEWEST_BUNDLES = 1_024
_CELLS = 20_000_000  # of the tables of bundles, all together
_ABSENT = Estimate(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, n_seeds=0)


def crossed(codes: IntArray, table: sparse.csr_array, n_groups: int) -> sparse.csr_array:
    """(N, K * T) each row of a table in the columns of its group; rows of no group are empty.

    Args:
        codes: (N,) group of each row, below 0 for none.
        table: (N, T).
        n_groups: K.

    Example:
        >>> table = sparse.csr_array(np.array([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0]]))
        >>> crossed(np.array([1, 0, -1]), table, 2).toarray().tolist()
        [[0.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    n_tasks = table.shape[1]
    code = np.repeat(codes, np.diff(table.indptr))
    kept = code >= 0
    columns = code[kept] * n_tasks + table.indices[kept]
    shape = (len(codes), n_groups * n_tasks)
    return sparse.csr_array((table.data[kept], columns, _ends(table, kept)), shape=shape)


def only(table: sparse.csr_array, images: Mask) -> sparse.csr_array:
    """A table whose rows of other images are empty."""
    kept = np.repeat(images, np.diff(table.indptr))
    columns = table.indices[kept]
    return sparse.csr_array((table.data[kept], columns, _ends(table, kept)), shape=table.shape)


def _ends(table: sparse.csr_array, kept: Mask) -> IntArray:
    """(N + 1,) where the rows of a table start and end once other entries than ``kept`` are gone.

    Rows stay in order, so going through coordinates and sorting them anew would be work for
    nothing.
    """
    return offsets(kept)[table.indptr]


def one_hot(codes: IntArray, n_groups: int, weights: FloatArray | None = None) -> sparse.csr_array:
    """(N, K) one column a row, none where the code is below 0."""
    rows = np.flatnonzero(codes >= 0)
    data = np.ones(len(rows)) if weights is None else weights[rows]
    return sparse.csr_array((data, (rows, codes[rows])), shape=(len(codes), n_groups))


def by_group(sums: FloatArray, n_groups: int) -> FloatArray:
    """(B, K, T) from (B, K * T) sums of a crossed table."""
    return sums.reshape(len(sums), n_groups, -1)


@dataclass(frozen=True, eq=False)
class About:
    """What a number rests on.

    Attributes:
        images: (N,) the images.
        side: whose captions its neutral rate describes.
        unit: see :class:`~bias_pipeline.metrics.base.Part`; a ``count`` has no interval.
        range: see there.
    """

    images: Mask
    side: str = "model"
    unit: str = "fraction"
    range: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Noise of mean 0 that resamplings add to the sums of a table, the estimate itself nothing.

    Resampling shows no image that is not there: an event that never happened happens in no
    resample, as if its chance were known to be 0.

    Attributes:
        amounts: (C,) what each sum is moved by, times Poisson(1) - 1.
        name: of what is summed, such as a digest of captions; equal names have equal noise.
    """

    amounts: FloatArray
    name: str

    @property
    def keys(self) -> UIntArray:
        """(C,) what decides the noise of each sum."""
        return keys_of(f"{self.name}:{column}" for column in range(len(self.amounts)))


@dataclass(frozen=True, eq=False)
class Tally:
    """What a metric counts, and what it makes of the sums.

    Attributes:
        tables: name to (N, C) counts of each image.
        numbers: sums of the tables, (B, C) each, to named numbers (B,).
        about: the same for all numbers that ``parts`` does not name.
        parts: name of a number to what it rests on.
        audit: for the manifest.
        notes: for the reader.
        lines: further tables by name, of what was found on the way.
        observations: sums of the tables to how many observations each number is a share of, (B,);
            these have the intervals of shares.
        differences: name of a number to the two shares of which it is the difference.
        smoothing: name of a table to the noise of its sums under resampling.
        tested: name of a number to the one whose p of being 0 it has.
        widening: name of a number to the factor by which resampling understates its spread.
    """

    tables: Mapping[str, sparse.csr_array]
    numbers: Callable[[Sums], Mapping[PartName, FloatArray]]
    about: About
    parts: Mapping[PartName, About] = field(default_factory=dict)
    audit: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    lines: Lines = field(default_factory=dict)
    observations: Callable[[Sums], Mapping[PartName, FloatArray]] = lambda sums: {}
    differences: Mapping[PartName, tuple[PartName, PartName]] = field(default_factory=dict)
    smoothing: Mapping[str, Smoothing] = field(default_factory=dict)
    tested: Mapping[PartName, PartName] = field(default_factory=dict)
    widening: Mapping[PartName, float] = field(default_factory=dict)


class Bundles:
    """Images in bundles that are resampled whole.

    Images are dealt into bundles by a hash of their ids, whose sums vary as the images do, so the
    interval has the same expected width as under the bootstrap by image and costs no more for a
    million of them. The same image is in the same bundle, and the bundle counts as often in a
    resampling, whatever captioner is scored and however many images it describes.

    Args:
        rows: the images.
        keys: (N,) hashes of all images' ids.
        n_columns: how many sums there will be: very wide tables get fewer bundles.

    Attributes:
        keys: one for each bundle, to resample it by.
    """

    def __init__(self, rows: IntArray, keys: UIntArray, n_columns: int) -> None:
        most = MOST_BUNDLES
        while most > FEWEST_BUNDLES and most * n_columns > _CELLS:
            most //= 2  # by halves, so that nearly equal tables get equally many
        of_image = (stream("bundle", 0, keys[rows]) % np.uint64(most)).astype(np.int64)
        used, self.bundle = np.unique(of_image, return_inverse=True)
        self.rows, self.keys = rows, used.astype(np.uint64)

    def sums(self, table: sparse.csr_array) -> FloatArray:
        """(number of bundles, C) sums of a table's rows."""
        bundle = np.zeros(table.shape[0], np.int64)
        bundle[self.rows] = self.bundle
        cell = np.repeat(bundle * table.shape[1], np.diff(table.indptr)) + table.indices
        sums = np.bincount(cell, table.data, len(self.keys) * table.shape[1])
        return np.asarray(sums, np.float64).reshape(len(self.keys), table.shape[1])


class CountingMetric(Metric):
    """A metric that counts.

    Args:
        attribute: whose groups are compared.
        stats: how intervals are made.
        words: a preset of the attribute whose words name the groups; None, or one that the
            attribute does not have: its own words.
    """

    def __init__(self, attribute: Attribute, stats: Bootstrap, words: str | None = None) -> None:
        self.attribute = attribute
        self.stats = stats
        self.words = words

    def see(self, corpus: Corpus) -> Seen:
        """What the metric looks at."""
        return Seen(corpus, self.attribute, self.words)

    @abstractmethod
    def tally(self, seen: Seen) -> Tally:
        """What is counted.

        Raises:
            NotApplicableError: if the data do not permit the metric.
        """

    def rests_on_names(self, part: PartName) -> bool:
        """Whether a number is about the groups that captions name.

        It is absent then where they name next to none: silence is no merit.
        """
        del part
        return True

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See the class; nothing is trained."""
        del splits
        seen = self.see(corpus)
        seen.check_captioned()
        tally = self.tally(seen)
        estimates = _estimates(tally, corpus.keys, self.stats)

        rests_on = _Resting(seen)
        about = {name: tally.parts.get(name, tally.about) for name in estimates}
        absent = {
            name: why
            for name, own in about.items()
            if self.rests_on_names(name) and (why := rests_on.unsaid(own.side))
        }
        parts: dict[str, Part] = {}
        for name, own in about.items():
            estimate = _ABSENT if name in absent else estimates[name]
            n_images = rests_on.n_images(own.images)
            parts[name] = Part(
                estimate=_uncertain(estimate) if own.unit == COUNT else estimate,
                unit=own.unit,
                range=own.range,
                n_images=n_images,
                coverage=n_images / rests_on.n_labelled,
                neutral_rate=rests_on.neutral_rate(own),
            )
        notes = [*corpus.notes, *tally.notes, *dict.fromkeys(absent.values())]
        tables = {**self.examples(seen), **tally.lines}
        return Score(parts, audit=tally.audit, notes=notes, tables=tables)

    def examples(self, seen: Seen) -> Lines:
        """Further tables of captions that numbers rest on, by name."""
        del seen
        return {}


class TaskMetric(CountingMetric):
    """A counting metric of groups and tasks.

    Args:
        attribute: whose groups are A.
        task: whose tasks are T.
        stats: how intervals are made.
        words: see :class:`CountingMetric`.
        exclude_tasks: tasks left out; every image shows a person.

    Raises:
        UsageError: if an excluded task is unknown.
    """

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        stats: Bootstrap,
        words: str | None = None,
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        super().__init__(attribute, stats, words)
        for name in exclude_tasks:
            choice("exclude_tasks", name, task.tasks)
        self.task = task
        self.exclude_tasks = tuple(exclude_tasks)

    def see(self, corpus: Corpus) -> Seen:
        """What the metric looks at."""
        return Seen(corpus, self.attribute, self.words, self.task, self.exclude_tasks)


def choice(key: str, value: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """A named choice.

    Raises:
        UsageError: if it is none of the known ones.
    """
    if value not in known:
        raise UsageError(f"metric.{key}: {value!r} is unknown; {did_you_mean(value, known)}")
    return value


def support(value: float) -> float:
    """How common a task must be to count, as scikit-learn's ``min_df`` has it.

    Raises:
        UsageError: if it is below 0.
    """
    if not value >= 0:
        raise UsageError(
            f"metric.min_support={value} must be 0 or more: below 1 a share, such as 0.005 of "
            "people's captions, from 1 on a number of them"
        )
    return value


def least_share(min_support: float, n_images: int) -> float:
    """The share that a task must reach.

    Args:
        min_support: below 1 that share; from 1 on a number of images, or of captions where there
            is one an image, which makes what counts depend on the size of the sample.
        n_images: how many there are.

    Example:
        >>> least_share(0.005, 8000), least_share(40, 8000)
        (0.005, 0.005)
    """
    return min_support if min_support < 1 else min_support / max(n_images, 1)


class _Resting:
    """What is said of the images that numbers rest on, once for each set of images.

    Hundreds of numbers share a handful of sets, told apart by identity: comparing a set of a
    million images for each number would cost more than the numbers.
    """

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.n_labelled = int(seen.labelled.sum())
        self._sets: dict[int, tuple[Mask, int]] = {}  # the mask is held, so its id stays its own
        self._rates: dict[tuple[int, str], float] = {}
        self.unsaid = cache(seen.unsaid)

    def n_images(self, images: Mask) -> int:
        """How many there are of (N,) flags."""
        key = id(images)
        if key not in self._sets:
            self._sets[key] = (images, int(images.sum()))
        return self._sets[key][1]

    def neutral_rate(self, about: About) -> float:
        """See :meth:`Seen.neutral_rate`."""
        self.n_images(about.images)
        key = (id(about.images), about.side)
        if key not in self._rates:
            self._rates[key] = self.seen.neutral_rate(about.side, about.images)
        return self._rates[key]


def _estimates(tally: Tally, keys: UIntArray, stats: Bootstrap) -> dict[PartName, Estimate]:
    used = sum((np.diff(table.indptr) for table in tally.tables.values()), np.zeros(1, np.int64))
    rows = np.flatnonzero((used > 0) | tally.about.images)
    bundles = Bundles(rows, keys, sum(t.shape[1] for t in tally.tables.values()))
    sums = {name: bundles.sums(table) for name, table in tally.tables.items()}
    noise = [own.keys for own in tally.smoothing.values()]

    def evaluate(weights: FloatArray) -> dict[PartName, FloatArray]:
        of_images, *of_noise = np.split(
            weights, np.cumsum([len(own) for own in (bundles.keys, *noise)][:-1]), axis=1
        )
        totals = {name: of_images @ own for name, own in sums.items()}
        for (name, own), drawn in zip(tally.smoothing.items(), of_noise, strict=True):
            totals[name] = totals[name] + (drawn - 1) * own.amounts
        numbers = tally.numbers(totals)
        return {name: np.asarray(values)[:, None] for name, values in numbers.items()}

    estimates = stats.estimate_weighted(
        np.concatenate([bundles.keys, *noise]), evaluate, trained=False
    )
    wider = {
        name: summary(widened(estimates[name].draws, factor), stats.level)
        for name, factor in tally.widening.items()
    }
    tested = {
        name: replace(estimates[name], p_value=two_sided_p(estimates[other]))
        for name, other in tally.tested.items()
    }
    made = estimates | wider | tested | _shares(tally, sums, estimates, stats.level)
    return {name: spanned(own) if name in HEADLINES else own for name, own in made.items()}


def _shares(
    tally: Tally,
    sums: Mapping[str, FloatArray],
    estimates: Mapping[PartName, Estimate],
    level: float,
) -> dict[PartName, Estimate]:
    """The numbers that are shares, or differences of two, with the intervals of shares."""
    totals = {name: own.sum(axis=0, keepdims=True) for name, own in sums.items()}
    draws = {
        name: share_of(
            estimates[name].draws,
            float(observations[0]),
            float(tally.parts.get(name, tally.about).images.sum()),
        )
        for name, observations in tally.observations(totals).items()
        if not math.isnan(estimates[name].value)
    }
    shares = {name: summary(own, level) for name, own in draws.items()}
    return shares | {
        name: replace(paired_difference(draws[one], draws[two], level), p_value=math.nan)
        for name, (one, two) in tally.differences.items()
        if one in draws and two in draws
    }


def _uncertain(estimate: Estimate) -> Estimate:
    """A plain count: resampling images would not say how sure it is."""
    nan = math.nan
    return replace(estimate, image_std=nan, ci_low=nan, ci_high=nan)
