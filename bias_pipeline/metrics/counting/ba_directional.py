"""BA->: directional bias amplification by counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
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
from bias_pipeline.metrics.functional.counts import Counts, nanmean
from bias_pipeline.metrics.references import WANG_2021
from bias_pipeline.metrics.value_names import PartName


@dataclass(eq=False, kw_only=True)
class DirectionalBiasAmplification(LabelledTaskMetric):
    """BA-> of Wang and Russakovsky 2021 on captions, in both directions.

    ``a_to_t``: given the group, are its usual tasks named more often than they are labelled?
    ``t_to_a``: given the task, is its usual group named more often? Usual means more frequent
    together in the labels than if group and task were independent. Each headline also has
    ``<direction>:object:NAME`` (mean over groups), ``<direction>:group:NAME`` (mean over
    tasks) and ``<direction>:undefined`` (pairs without a conditional probability), and
    ``t_to_a`` has both public denominators, which may differ in sign.

    In ``t_to_a`` the sign of a pair is taken from other images than its change, so the number does
    not depend on how many images there are; ``t_to_a:published:*`` use the same images for both, as
    the paper does. Under ``denominator=images``, captions that name no group lower ``t_to_a``, for
    people too, so it has no p; conclusions are drawn from ``t_to_a:named``.

    A→T compares how often tasks are named with how often they are labelled, so a captioner that
    names few objects scores below 0 whatever its bias: read it with the mention rates.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ba_directional",
        title="Directional bias amplification (BA->)",
        version=5,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 the captioner amplifies in that direction",
        family="counting",
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
                    "biased people",
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
    denominator: Denominator = "images"  # see there
    undefined: Absent = "drop"  # see `ba_directional`

    def rests_on_names(self, part: PartName) -> bool:
        """T→A only: A→T uses labelled groups."""
        return part.direction == "t_to_a"

    def tally(self, view: CorpusView) -> Tally:
        """See the class."""
        sides = self.sides(view)

        def numbers(sums: Sums) -> Numbers:
            folds = counts_of_folds(sums, sides.n_groups)
            counts = crossfit.whole(folds)
            a_to_t = directional_pairs(counts, "a_to_t", tie=self.tie)
            t_to_a = {
                how: crossfit.t_to_a_pairs(folds, tie=self.tie, denominator=how)
                for how in DENOMINATORS
            }
            values = {
                **self._direction(a_to_t, "a_to_t", view),
                **self._direction(t_to_a[self.denominator], "t_to_a", view),
                **{PartName(direction="t_to_a", detail=h): self._mean(t_to_a[h]) for h in t_to_a},
                **{_published(how): self._published(counts, how) for how in DENOMINATORS},
            }
            return mention_rates(counts, sides.images) | {
                name: CountedNumber(
                    values=value,
                    images=sides.images,
                    unit=COUNT if name.what == "undefined" else "fraction",
                )
                for name, value in values.items()
            }

        return Tally(
            sides.tables_of_folds(view.corpus.keys),
            numbers,
            audit={"pairs": len(view.tasks) * sides.n_groups},
            notes=[self.caution()],
        )

    def _published(self, counts: Counts, denominator: str) -> Float64Array:
        return ba_directional(
            counts, "t_to_a", tie=self.tie, denominator=denominator, undefined=self.undefined
        )

    def _averaged(self, pairs: Float64Array) -> Float64Array:
        """The pairs of which means are taken."""
        return np.nan_to_num(pairs, nan=0.0) if self.undefined == "keep" else pairs

    def _mean(self, pairs: Float64Array) -> Float64Array:
        return nanmean(self._averaged(pairs), 2)

    def _direction(
        self, pairs: Float64Array, direction: str, view: CorpusView
    ) -> dict[PartName, Float64Array]:
        averaged = self._averaged(pairs)
        tasks = nanmean(np.swapaxes(averaged, -1, -2), 1)
        of_groups = nanmean(averaged, 1)
        return {
            PartName(direction=direction): self._mean(pairs),
            PartName("undefined", direction=direction): np.isnan(pairs).sum(axis=(-2, -1)),
            **{
                PartName(direction=direction, group=g): of_groups[:, a]
                for a, g in enumerate(view.groups)
            },
            **{
                PartName(direction=direction, object=o): tasks[:, t]
                for t, o in enumerate(view.tasks)
            },
        }


def _published(denominator: str) -> PartName:
    return PartName("published", direction="t_to_a", detail=denominator)
