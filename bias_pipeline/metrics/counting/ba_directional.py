"""BA-> measures directional bias amplification by counting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.gold_counts import CountedInOneStep
from bias_pipeline.metrics.counting.numbers import COUNT, CountedNumber, Numbers, Sums, Tally
from bias_pipeline.metrics.counting.sides import (
    LabelledTaskMetric,
    counts_of_folds,
    mention_rates,
)
from bias_pipeline.metrics.functional import crossfit
from bias_pipeline.metrics.functional.amplification import (
    DENOMINATORS,
    Absent,
    Denominator,
    Tie,
    ba_directional,
    directional_pairs,
)
from bias_pipeline.metrics.functional.counts import nanmean
from bias_pipeline.metrics.references import WANG_2021
from bias_pipeline.metrics.value_names import PartName


@dataclass(eq=False, kw_only=True)
class DirectionalBiasAmplification(LabelledTaskMetric, CountedInOneStep):
    """BA-> of Wang and Russakovsky 2021, measured on captions.

    ``a_to_t`` asks whether captions name a group's usual tasks (such as objects) more often than
    labels do. ``t_to_a`` asks whether captions name a task's usual group more often than labels do.
    A task is usual for a group, and the group for the task, if labels contain both together more
    often than by chance.

    * ``<direction>:object:NAME``, ``:group:NAME``: the score of one task, averaged over groups, and
      the score of one group, averaged over tasks.
    * ``t_to_a:images``, ``t_to_a:named``: the score if shares are taken of all images, or only of
      images whose caption names a group. The two scores may have different signs. Conclusions rest
      on ``named``, since captions that name no group lower ``images``.
    * ``t_to_a:published:*``: the same numbers by the published formula. Ours finds usual pairs on
      some images and measures changes on other images.

    If a captioner names few objects, ``a_to_t`` is below 0 whatever the bias. So also compare
    ``mentions:model`` with ``mentions:human``.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ba_directional",
        title="Directional bias amplification (BA->)",
        version=5,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, the captioner amplifies bias in that direction",
        family="counting",
        streams=True,
        question="tasks",
        sources={WANG_2021: "eq. 2-3"},
        needs=("objects",),
        responses={
            "a_to_t": ExpectedResponse(
                moves=("object follows group",),
                stays=(
                    "negation",
                    "synonym",
                    "word order",
                    "unlisted word",
                    "group follows object",
                    "women called men",
                    "biased annotators",
                ),
            ),
            "t_to_a": ExpectedResponse(
                moves=("group follows object",),
                stays=("object follows group",),
            ),
        },
        says={
            "a_to_t": "it names the tasks usual for each {attribute} more often than labelled",
            "t_to_a": "it names the {attribute} usual for a task more often than labelled",
        },
        readings={"t_to_a": EvidenceRule("t_to_a:named", named=True)},
        untested=("a_to_t", "t_to_a"),
        source_identifying=True,
        amplification=True,
        directional=True,
    )

    tie: Tie = "zero"  # see `directional_pairs`
    denominator: Denominator = "images"  # see `directional_pairs`
    undefined: Absent = "drop"  # see `ba_directional`

    def rests_on_names(self, part: PartName) -> bool:
        """Whether a number is about T→A, since numbers about A→T use only labelled groups."""
        return part.direction == "t_to_a"

    def tally(self, view: CorpusView) -> Tally:
        sides = self.sides(view)
        number = partial(CountedNumber, images=sides.images)

        def numbers(sums: Sums) -> Numbers:
            folds = counts_of_folds(sums, sides.n_groups)
            counts = crossfit.sum_folds(folds)
            a_to_t = directional_pairs(counts, "a_to_t", tie=self.tie)
            t_to_a = {
                how: crossfit.t_to_a_pairs(folds, tie=self.tie, denominator=how)
                for how in DENOMINATORS
            }
            values = mention_rates(counts, sides.images)
            values |= self._direction(number, a_to_t, "a_to_t", view)
            values |= self._direction(number, t_to_a[self.denominator], "t_to_a", view)
            of = partial(PartName, direction="t_to_a")
            for how in DENOMINATORS:
                values[of(detail=how)] = number(values=self._mean(t_to_a[how]))
            for how in DENOMINATORS:
                published = ba_directional(
                    counts, "t_to_a", tie=self.tie, denominator=how, undefined=self.undefined
                )
                values[of("published", detail=how)] = number(values=published)
            return values

        return Tally(
            sides.tables_of_folds(view.corpus.keys),
            numbers,
            audit={"pairs": len(view.tasks) * sides.n_groups},
            notes=[self.caution()],
        )

    def _averaged_pairs(self, pairs: Float64Array) -> Float64Array:
        return np.nan_to_num(pairs, nan=0.0) if self.undefined == "keep" else pairs

    def _mean(self, pairs: Float64Array) -> Float64Array:
        return nanmean(self._averaged_pairs(pairs), 2)

    def _direction(
        self,
        number: Callable[..., CountedNumber],
        pairs: Float64Array,
        direction: str,
        view: CorpusView,
    ) -> dict[PartName, CountedNumber]:
        averaged = self._averaged_pairs(pairs)
        of_tasks = nanmean(np.swapaxes(averaged, -1, -2), 1)
        undefined = np.isnan(pairs).sum(axis=(-2, -1))
        return {
            PartName(direction=direction): number(values=self._mean(pairs)),
            PartName("undefined", direction=direction): number(values=undefined, unit=COUNT),
            **number(values=nanmean(averaged, 1)).by_group(view.groups, direction=direction),
            **number(values=of_tasks).by_object(view.tasks, direction=direction),
        }
