"""What all counting metrics share.

A counting metric turns a corpus into tables with a row an image, and computes numbers from the
tables' sums (:class:`~bias_pipeline.metrics.counting.numbers.Tally`). Nothing is trained, and no
seed is used.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.metrics.base import Metric, Number, Score
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.numbers import (
    CountedNumber,
    LargestGap,
    Lines,
    Numbers,
    Sums,
    Tally,
    counted_share,
)
from bias_pipeline.metrics.counting.resampling import estimates_of
from bias_pipeline.metrics.value_names import HUMAN, MODEL, SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.text.mentions import NO_GROUP

# What a counting metric of one's own needs, beside what stands below.
__all__ = [
    "HUMAN",
    "MODEL",
    "NO_GROUP",
    "SCORE",
    "SIDES",
    "CorpusView",
    "CountedNumber",
    "LargestGap",
    "Numbers",
    "PartName",
    "Sums",
    "Tally",
    "counted_share",
]

MOST_EXAMPLES = 12
_ABSENT = Estimate(math.nan)


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
    def tally(self, view: CorpusView) -> Tally:
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
        numbers = tally.counted(tally.totals)
        estimates = estimates_of(tally, numbers, corpus.keys, self.stats)
        rests_on, scope = _ImagesBehind(view), self.scope(corpus)
        parts: dict[str, Number] = {}
        silent: list[str] = []
        for name, number in numbers.items():
            estimate = estimates[name]
            if self.rests_on_names(name):
                sides = (number.side, *(share.side for share in number.shares))
                too_few = [why for side in sides if (why := rests_on.too_few_named(side))]
                estimate = _ABSENT if too_few else estimate
                silent += too_few
            n_images = rests_on.n_images(number.images)
            parts[name] = Number(
                **vars(_ABSENT if math.isnan(estimate.value) else estimate),
                unit=number.unit,
                range=number.range,
                n_images=n_images,
                coverage=n_images
                / rests_on.n_images(scope if number.among is None else number.among),
                neutral_rate=rests_on.neutral_rate(number),
            )
        notes = [*corpus.notes, *tally.notes, *dict.fromkeys(silent)]
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


def example_lines(
    view: CorpusView, captions: IntArray, groups: Mapping[str, IntArray], total: str
) -> list[dict[str, object]]:
    """A few of the model's captions, drawn by a hash of their images' ids.

    So any order of the input gives the same.

    Args:
        view: what captions say.
        captions: (M,) those to draw from.
        groups: column to (C,) the group of each caption that it shows.
        total: name of the column that says how many there are.
    """
    of_model = view.corpus.side("model")
    keys = view.corpus.keys[of_model.image_rows[captions]]
    return [
        {
            "image_id": view.corpus.ids[of_model.image_rows[i]],
            **{column: view.groups[codes[i]] for column, codes in groups.items()},
            "caption": of_model.text(i),
            total: len(captions),
        }
        for i in captions[np.argsort(keys, kind="stable")[:MOST_EXAMPLES]].tolist()
    ]


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

    def neutral_rate(self, number: CountedNumber) -> float:
        """See :meth:`CorpusView.neutral_rate`."""
        self.n_images(number.images)
        key = (id(number.images), number.side)
        if key not in self._rates:
            self._rates[key] = self.view.neutral_rate(number.side, number.images)
        return self._rates[key]


def indicators(counts: Float64Array) -> IntArray:
    """1 where a count is above 0."""
    return (counts > 0).astype(np.int64)
