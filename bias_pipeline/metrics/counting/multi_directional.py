"""Multi-> measures directional bias amplification of sets of tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.declared import Count
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import Cost, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.numbers import COUNT, CountedNumber, Numbers, Sums, Tally
from bias_pipeline.metrics.counting.sides import (
    LabelledTaskMetric,
    LabelsVsCaptions,
    counts_of,
    mention_rates,
)
from bias_pipeline.metrics.functional.amplification import (
    Denominator,
    Sets,
    association,
    holds,
    multi_mals,
    multi_pairs,
    multi_summary,
    task_sets,
)
from bias_pipeline.metrics.references import ZHAO_2023
from bias_pipeline.metrics.value_names import DIRECTIONS, PartName
from bias_pipeline.stats.shares import spread_of_small_shares

N_SETS = PartName("sets")
MALS, MALS_VARIANCE = PartName("mals"), PartName("mals", detail="variance")


@dataclass(eq=False, kw_only=True)
class MultiDirectional(LabelledTaskMetric):
    """Multi-> and Multi_MALS of Zhao et al. 2023, measured on captions.

    A caption names a set of tasks if it names every task in the set. ``a_to_t`` and ``t_to_a`` are
    mean absolute changes from labels to captions, over groups and sets. So chance alone makes both
    larger than 0. In ``<direction>:signed``, each change has the sign that BA-> gives it.
    ``<direction>:variance`` is the variance of the changes. ``mals`` and ``mals:variance`` are the
    mean and the variance of Multi_MALS.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="multi_directional",
        title="Directional bias amplification of task sets (Multi->)",
        version=4,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; scores are from 0 to 1 unless absolute=false, and chance "
        "alone makes them larger than 0",
        family="counting",
        question="tasks",
        sources={ZHAO_2023: "eq. 3-6"},
        needs=("objects",),
        streams=True,
        cost=Cost(per_caption=5e-6),
        responses={
            "a_to_t": ExpectedResponse(
                moves=("object follows group",), stays=("group follows object",)
            ),
            "t_to_a": ExpectedResponse(
                moves=("group follows object",), stays=("object follows group",)
            ),
        },
        says={
            "a_to_t": "how often sets of tasks are named changes with the {attribute}, up or down",
            "t_to_a": "how often it names each {attribute} changes with sets of tasks, up or down",
        },
        untested=("a_to_t", "t_to_a"),
        source_identifying=True,
        amplification=True,
        directional=True,
    )

    # All `subsets` of images' tasks (the paper) or only their `complete` sets (the public code)
    sets: Sets = "subsets"
    max_size: Count = 2  # the largest set
    # a set counts if at least so many observations of the labels contain it (the paper: one)
    min_support: Count = 1
    absolute: bool = True  # whether headlines are means of absolute changes (the paper) or signed
    denominator: Denominator = "images"  # see `directional_pairs`

    def rests_on_names(self, part: PartName) -> bool:
        """Whether a number is about T→A or Multi_MALS; A→T uses labelled groups."""
        return part.direction == "t_to_a" or part.what == "mals"

    def tally(self, view: CorpusView) -> Tally:
        sides = self._of_sets(view)
        n_sets = sides.labelled.shape[1]

        of_tasks = spread_of_small_shares(np.asarray(sides.labelled.sum(axis=0)))
        number = partial(CountedNumber, images=sides.images)

        def numbers(sums: Sums) -> Numbers:
            counts = counts_of(sums, sides.n_groups)
            mals, variance = multi_mals(counts)
            values = mention_rates(counts, sides.images, "sets")
            values[MALS] = number(values=mals, range=(0.0, 2.0))  # shares of several groups change
            values[MALS_VARIANCE] = number(values=variance)
            signs = association(counts)
            for direction in DIRECTIONS:
                pairs = multi_pairs(counts, direction, denominator=self.denominator)
                absolute, signed, variance = multi_summary(pairs, signs)
                of = partial(PartName, direction=direction)
                widening = of_tasks if direction == "t_to_a" else 1.0
                values[of("variance")] = number(values=variance)
                values[of()] = number(
                    values=absolute if self.absolute else signed,
                    range=(0.0, 1.0) if self.absolute else None,
                    widening=widening,
                )
                values[of("signed")] = number(values=signed, widening=widening)
                undefined = np.isnan(pairs).sum(axis=(-2, -1))
                values[of("undefined")] = number(values=undefined, unit=COUNT)
            n_all = np.full(len(sums["groups"]), float(n_sets))
            return {**values, N_SETS: number(values=n_all, unit=COUNT)}

        return Tally(sides.tables(), numbers, audit={"sets": n_sets}, notes=[self.caution()])

    def _of_sets(self, view: CorpusView) -> LabelsVsCaptions:
        """Labels and captions, with a column for each set of tasks that enough labels contain."""
        counted = self.sides(view).images
        if self.labels == "each":
            observed = view.mentions("human")[counted[view.images("human")]]
        else:
            observed = self.label_table(view)[counted]
        sets = task_sets(sparse.csr_array(observed), self.sets, self.max_size)
        sides = self.sides(view, lambda tasks: holds(tasks, sets))
        observations = np.asarray(sides.labelled.sum(axis=0))
        common = np.flatnonzero(observations >= max(self.min_support, 1))
        if not len(common):
            raise NotApplicableError(
                f"no set of tasks has metric.min_support={self.min_support} labelled images"
            )
        return replace(
            sides,
            labelled=sparse.csr_array(sides.labelled[:, common]),
            predicted=sparse.csr_array(sides.predicted[:, common]),
        )
