"""Differential fairness measures how much the words of captions depend on the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import TaskMetric, least_share
from bias_pipeline.metrics.counting.numbers import Numbers, Smoothing, Sums, Tally
from bias_pipeline.metrics.counting.sides import (
    CaptionSides,
    by_group,
    cross_with_groups,
    mean_of,
    one_hot,
)
from bias_pipeline.metrics.functional.groups import (
    PRIORS,
    Prior,
    differential_fairness,
    epsilons,
    pseudo_counts,
)
from bias_pipeline.metrics.references import FOULDS_2020
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)

# The share of the prior that every resampling draws anew. It gives intervals the right coverage
# when human captions are compared with human captions (``experiments/inference``). Ours.
RESAMPLED_PRIOR = 0.2
# Under the prior ``share`` resampling finds 0.83 to 0.95 of the spread of a largest ratio: captions
# of three captioners, 500 and 2,000 images (``experiments/inference``). Ours.
UNDERSTATED = 1.15
PUBLISHED = PartName("published")


@dataclass(eq=False, kw_only=True)
class DifferentialFairness(TaskMetric):
    """The captioner's epsilon of differential fairness, minus the annotators' epsilon.

    Epsilon is the largest |ln P(t | a) - ln P(t | a')| over all tasks t and all pairs of labelled
    groups a, a'. P(t | a) is the share of the group's captions that name the task, smoothed by a
    prior. ``model`` and ``human`` are the epsilons, and ``object:NAME`` is the difference for one
    task. ``published`` is the score under the paper's prior.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="differential_fairness",
        title="Differential fairness amplification",
        version=4,
        unit="nat",
        range=(-np.inf, np.inf),
        neutral=0.0,
        direction="lower is fairer; above 0, captions differ more between groups than human "
        "captions do",
        family="counting",
        streams=True,
        question="tasks",
        sources={FOULDS_2020: "definition 3.1 and section 4; bias amplification: section 5"},
        without={"human captions": MODEL},
        responses={
            "score": ExpectedResponse(
                moves=("object follows group",),
                stays=(
                    "negation",
                    "synonym",
                    "word order",
                    "unlisted word",
                    "women called men",
                    "names no group",
                    "biased annotators",
                ),
            )
        },
        says={
            "score": "groups differ more in its captions than in human captions",
        },
        readings={"score": EvidenceRule("score", follows=("words", "vocabulary"))},
        source_identifying=True,
        amplification=True,
    )

    prior: Prior = "share"  # see `epsilons`
    # A task counts if at least this share of human captions (of the captioner's if there are no
    # human captions) name it; a maximum over rarer tasks is noise. Ours. See `least_share`
    min_support: NotNegative = 0.005
    positions: Count = 5  # how many human captions of an image are used

    def rests_on_names(self, part: PartName) -> bool:
        """False for every number, since groups come from labels."""
        return False

    def tally(self, view: CorpusView) -> Tally:
        view.check_compared(view.codes[view.labelled & view.has("model")])
        sides = CaptionSides.from_view(view, self.positions)
        n_groups, supported = len(view.groups), self._supported_tasks(view, sides)
        tasks = [view.tasks[t] for t in supported]
        compared = {part: view.compared_groups(images) for part, images in sides.images.items()}

        def table(side: str, chosen: BoolArray) -> sparse.csr_array:
            group = np.where(chosen, view.codes[view.images(side)], -1)
            named = sparse.csr_array(view.mentions(side)[:, supported])
            counts = [cross_with_groups(group, named, n_groups), one_hot(group, n_groups)]
            return view.by_image(side, sparse.csr_array(sparse.hstack(counts)))

        def epsilons_of(
            part: PartName, sums: Sums
        ) -> tuple[Float64Array, Float64Array, Float64Array]:
            whole, single, published = [], [], []
            for table in sides.position_sums(part, sums):
                joint = by_group(table[:, :-n_groups], n_groups)[:, compared[part]]
                groups = table[:, -n_groups:][:, compared[part]]
                whole.append(differential_fairness(joint, groups, self.prior))
                single.append(epsilons(joint, groups, self.prior))
                published.append(differential_fairness(joint, groups, "laplace"))
            return mean_of(whole), mean_of(single), mean_of(published)

        # Other priors have noise of their own
        widening = UNDERSTATED if self.prior == "share" else 1.0

        def numbers(sums: Sums) -> Numbers:
            each = {part: epsilons_of(part, sums) for part in sides.images}
            whole, single, published = (
                {part: sides.number(part, three[k], "nat") for part, three in each.items()}
                for k in range(3)
            )
            values = {part: replace(one, widening=widening) for part, one in whole.items()}
            if MODEL_PAIRED in values:
                score = values[MODEL_PAIRED] - values[HUMAN_PAIRED]
                values[SCORE] = replace(score, widening=widening)
                values[PUBLISHED] = published[MODEL_PAIRED] - published[HUMAN_PAIRED]
                single[SCORE] = single[MODEL_PAIRED] - single[HUMAN_PAIRED]
            for part in [part for part in (SCORE, MODEL, HUMAN) if part in single]:
                values |= single[part].by_object(tasks, side=part.side)
            return values

        tables = sides.tables(view, table)
        return Tally(
            tables,
            numbers,
            audit={"tasks": tasks, "tasks_without_support": len(view.tasks) - len(tasks)},
            notes=sides.notes,
            smoothing=self._smoothing(view, sides, tables),
        )

    def _smoothing(
        self, view: CorpusView, sides: CaptionSides, tables: Mapping[str, sparse.csr_array]
    ) -> dict[str, Smoothing]:
        """The noise of the prior for each table, part of which is drawn for each resample."""
        if not PRIORS[self.prior] or self.prior == "share":
            return {}
        smoothing = {}
        for part in sides.images:
            captions = view.corpus.side(part.side).digest
            for position, name in enumerate(sides.keys(part)):
                totals = np.asarray(tables[name].sum(axis=0), np.float64)
                groups = totals[-len(view.groups) :]
                compared = view.compared_groups(sides.images[part])
                alpha = np.zeros_like(groups)
                alpha[compared] = pseudo_counts(groups[compared], self.prior)
                tasks = (len(totals) - len(groups)) // len(groups)
                amounts = np.append(np.repeat(RESAMPLED_PRIOR * alpha, tasks), 0 * groups)
                smoothing[name] = Smoothing(amounts, f"{captions}:{position}")
        return smoothing

    def _supported_tasks(self, view: CorpusView, sides: CaptionSides) -> IntArray:
        """The tasks that human captions name often enough; model captions play no part."""
        part = HUMAN if HUMAN in sides.images else MODEL
        named, captions = _naming(view, sides, part)
        least = least_share(self.min_support, int(sides.images[part].sum()))
        supported = np.flatnonzero(named / captions >= least)
        if not len(supported):
            raise NotApplicableError(
                f"no task is named in {100 * least:.2g} % of {part.side} captions; lower "
                "metric.min_support"
            )
        if not _naming(view, sides, MODEL)[0][supported].any():
            raise NotApplicableError("the captioner names no task: nothing can be measured")
        return supported


def _naming(view: CorpusView, sides: CaptionSides, part: PartName) -> tuple[Float64Array, int]:
    """How many captions of a part name each task, (T,), and the number of captions."""
    chosen = sides.images[part][view.images(part.side)]
    return np.asarray(view.mentions(part.side)[chosen].sum(axis=0), np.float64), int(chosen.sum())
