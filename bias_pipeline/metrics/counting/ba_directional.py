"""BA->: directional bias amplification by counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.metrics.base import MetricInfo, Reading, Response
from bias_pipeline.metrics.counting.labels import (
    LabelledTaskMetric,
    counts_of,
    mention_rates,
    mentions_about,
)
from bias_pipeline.metrics.counting.tally import COUNT, About, FloatArray, Sums, Tally, choice
from bias_pipeline.metrics.functional.amplification import (
    DENOMINATORS,
    TIES,
    UNDEFINED,
    directional,
    directional_pairs,
)
from bias_pipeline.metrics.functional.counts import Counts, known_mean
from bias_pipeline.metrics.parts import DIRECTIONS, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.metrics.sources import WANG_2021
from bias_pipeline.stats.bootstrap import Bootstrap


class DirectionalBiasAmplification(LabelledTaskMetric):
    """BA-> of Wang and Russakovsky 2021 on captions, in both directions.

    ``a_to_t``: given the group, are the tasks it goes with named more often than they are labelled?
    ``t_to_a``: given the task, is the group it goes with named more often? Beside each headline
    stand ``<direction>:object:NAME`` (mean over groups), ``<direction>:group:NAME`` (mean over
    tasks) and ``<direction>:undefined`` (pairs without a conditional probability), and for
    ``t_to_a`` both public denominators, which may differ in sign.

    A->T compares how often tasks are named with how often they are labelled, so a captioner that
    names few objects scores below 0 whatever its bias: read the mention rates beside it.

    Args:
        attribute: see :class:`~bias_pipeline.metrics.counting.labels.LabelledTaskMetric`.
        task: see there.
        stats: see there.
        labels: see there.
        groups: see there.
        unclear: see there.
        tie: see :func:`~bias_pipeline.metrics.functional.amplification.directional_pairs`.
        denominator: see there.
        undefined: see :func:`~bias_pipeline.metrics.functional.amplification.directional`.
        words: see :class:`~bias_pipeline.metrics.counting.labels.LabelledTaskMetric`.
        exclude_tasks: see there.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ba_directional",
        title="Directional bias amplification (BA->)",
        version=3,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 the captioner amplifies in that direction",
        family="counting",
        question="tasks",
        sources={WANG_2021: "eq. 2-3"},
        needs=("objects",),
        responses={
            "a_to_t": Response(
                moves=("object follows group",),
                stays=(
                    "negation",
                    "synonym",
                    "word order",
                    "unlisted word",
                    "group follows object",
                    "women called men",
                    "biased people",
                ),
            ),
            "t_to_a": Response(
                moves=("group follows object",),
                stays=("object follows group",),
            ),
        },
        says={
            "a_to_t": "where a {attribute} is common with a task, it mentions the task more often",
            "t_to_a": "where a task is common with a {attribute}, it names that one more often",
        },
        readings={"t_to_a": Reading("t_to_a:named", named=True)},
        untested=("a_to_t",),
        source_identifying=True,
        amplification=True,
        directional=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        stats: Bootstrap,
        labels: str = "objects",
        groups: str = "labels",
        unclear: str = "keep",
        tie: str = "zero",
        denominator: str = "images",
        undefined: str = "drop",
        words: str | None = None,
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        super().__init__(attribute, task, stats, labels, groups, unclear, words, exclude_tasks)
        self.tie = choice("tie", tie, TIES)
        self.denominator = choice("denominator", denominator, DENOMINATORS)
        self.undefined = choice("undefined", undefined, UNDEFINED)

    def rests_on_names(self, part: PartName) -> bool:
        """T->A: A->T goes by labelled groups."""
        return part.direction == "t_to_a"

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        sides = self.sides(seen)

        def numbers(sums: Sums) -> dict[PartName, FloatArray]:
            counts = counts_of(sums, sides.n_groups)
            values = mention_rates(counts)
            for direction in DIRECTIONS:
                values |= self._direction(counts, direction, seen)
            return values | {
                PartName(direction="t_to_a", detail=how): self._headline(counts, "t_to_a", how)
                for how in DENOMINATORS
            }

        return Tally(
            tables=sides.tables(),
            numbers=numbers,
            about=About(sides.images),
            parts={
                **{_undefined(d): About(sides.images, unit=COUNT) for d in DIRECTIONS},
                **mentions_about(sides.images),
            },
            audit={"pairs": len(seen.tasks) * sides.n_groups},
            notes=[self.caution()],
        )

    def _headline(self, counts: Counts, direction: str, denominator: str) -> FloatArray:
        return directional(
            counts, direction, tie=self.tie, denominator=denominator, undefined=self.undefined
        )

    def _direction(self, counts: Counts, direction: str, seen: Seen) -> dict[PartName, FloatArray]:
        pairs = directional_pairs(counts, direction, tie=self.tie, denominator=self.denominator)
        tasks = known_mean(np.swapaxes(pairs, -1, -2), 1)
        of_groups = known_mean(pairs, 1)
        return {
            PartName(direction=direction): self._headline(counts, direction, self.denominator),
            _undefined(direction): np.isnan(pairs).sum(axis=(-2, -1)),
            **{
                PartName(direction=direction, group=g): of_groups[:, a]
                for a, g in enumerate(seen.groups)
            },
            **{
                PartName(direction=direction, object=o): tasks[:, t]
                for t, o in enumerate(seen.tasks)
            },
        }


def _undefined(direction: str) -> PartName:
    return PartName("undefined", direction=direction)
