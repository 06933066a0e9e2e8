"""The base of counting metrics.

A metric of this kind turns a corpus into tables with a row per image. All numbers are computed from
sums over rows (:class:`~bias_pipeline.metrics.counting.numbers.Tally`). Nothing is trained, and no
seed is used.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import (
    NAME_HUMAN_CAPTIONS,
    NotApplicableError,
    UsageError,
    did_you_mean,
)
from bias_pipeline.metrics.base import Metric, Number, Score
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.numbers import (
    CountedNumber,
    LargestGap,
    Numbers,
    Sums,
    Tally,
    counted_share,
)
from bias_pipeline.metrics.counting.resampling import estimates_of
from bias_pipeline.metrics.value_names import HUMAN, MODEL, SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.text.mentions import NO_GROUP

# What users need to write a counting metric, besides the names below.
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

    attribute: Attribute  # the attribute whose groups are compared
    stats: Bootstrap  # gives resamples and level of intervals
    _: KW_ONLY
    # The preset whose words name the groups. If None, or if the attribute has no such preset, the
    # attribute's own words do
    words: str | None = None

    def see(self, corpus: Corpus) -> CorpusView:
        return CorpusView(corpus, self.attribute, self.words)

    @abstractmethod
    def tally(self, view: CorpusView) -> Tally:
        """The tables and numbers of the metric."""

    def rests_on_names(self, part: PartName) -> bool:
        """Whether a number depends on the groups that captions name.

        If almost no caption names a group, the number is left out, so that silence does not count
        as fair.
        """
        del part
        return True

    def check(self, view: CorpusView) -> None:
        """Raise an error if nothing in the corpus can be counted."""
        view.check_captioned()
        described = view.labelled & view.has("model") & view.has("human")
        if "human captions" in self.info.needs and not described.any():
            raise NotApplicableError(
                "no captioned image of a group has human captions to compare it "
                f"with; {NAME_HUMAN_CAPTIONS}"
            )

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """Count, and compute the numbers; nothing is trained."""
        del splits
        view = self.see(corpus)
        self.check(view)
        tally = self.tally(view)
        numbers = tally.counted_numbers(tally.totals)
        estimates = estimates_of(tally, numbers, corpus.keys, self.stats)
        tally = replace(tally, tables={})  # they are large
        # Hundreds of numbers share a few arrays of images, so equal arrays are found by identity.
        sets = {id(number.images): number.images for number in numbers.values()}
        n_images = {key: int(images.sum()) for key, images in sets.items()}
        rates = {
            (key, side): view.neutral_rate(side, sets[key])
            for key, side in {(id(n.images), n.side) for n in numbers.values()}
        }
        too_few_named, n_scope = cache(view.too_few_named), int(self.scope(corpus).sum())
        parts: dict[str, Number] = {}
        silent: list[str] = []
        for name, number in numbers.items():
            estimate, key = estimates[name], id(number.images)
            if self.rests_on_names(name):
                sides = (number.side, *(share.side for share in number.shares))
                too_few = [why for side in sides if (why := too_few_named(side))]
                estimate = _ABSENT if too_few else estimate
                silent += too_few
            n_among = n_scope if number.among is None else int(number.among.sum())
            parts[name] = Number(
                **vars(_ABSENT if math.isnan(estimate.value) else estimate),
                unit=number.unit,
                range=number.range,
                n_images=n_images[key],
                coverage=n_images[key] / n_among,
                neutral_rate=rates[key, number.side],
            )
        notes = [*corpus.notes, *tally.notes, *dict.fromkeys(silent)]
        return Score(parts, audit=tally.audit, notes=notes, tables=tally.lines)


@dataclass(eq=False)
class TaskMetric(CountingMetric):
    """A counting metric that reads groups and tasks."""

    task: TaskVocabulary  # the vocabulary of the T tasks
    _: KW_ONLY
    exclude_tasks: Sequence[str] = ("person",)  # tasks to leave out; every image shows a person

    def __post_init__(self) -> None:
        check_excluded(self.exclude_tasks, self.task)

    def see(self, corpus: Corpus) -> CorpusView:
        """The groups and tasks that the metric reads."""
        return CorpusView(corpus, self.attribute, self.words, self.task, self.exclude_tasks)


def example_lines(
    view: CorpusView, captions: IntArray, groups: Mapping[str, IntArray], total: str
) -> list[dict[str, object]]:
    """Table lines that show a few captions of the model, drawn by a hash of image ids.

    The order of the input does not change the lines.

    Args:
        view: the corpus as the metric reads it.
        captions: (M,) indices of the captions to draw from.
        groups: for each column of the table, the group that the column shows for each caption,
            (C,).
        total: name of the column that says how many such captions there are.
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
    if value not in known:
        raise UsageError(f"metric.{key}: {value!r} is unknown; {did_you_mean(value, known)}")


def row_of(numerator: str | None, view: CorpusView) -> int:
    """The index of the group in a ratio's numerator: ``numerator``, or the first labelled group."""
    if numerator is None:
        return 0
    check_known("numerator", numerator, view.groups)
    return view.groups.index(numerator)


def check_excluded(names: Sequence[str], task: TaskVocabulary) -> None:
    """Raise an error if a task to leave out is not in the vocabulary."""
    for name in names:
        check_known("exclude_tasks", name, task.tasks)


def least_share(min_support: float, n_images: int) -> float:
    """The share of captions that must name a task.

    If ``min_support`` is 1 or more, it is a number of images.

    Example:
        >>> least_share(0.005, 8000), least_share(40, 8000)
        (0.005, 0.005)
    """
    return min_support if min_support < 1 else min_support / max(n_images, 1)


def indicators(counts: Float64Array) -> IntArray:
    """An array that is 1 where a count is above 0."""
    return (counts > 0).astype(np.int64)
