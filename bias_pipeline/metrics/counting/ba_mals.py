"""BA_MALS measures whether captions strengthen the link between objects and their usual groups."""

from __future__ import annotations

from dataclasses import dataclass
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
    cross_with_groups,
    mention_rates,
)
from bias_pipeline.metrics.functional import crossfit
from bias_pipeline.metrics.functional.amplification import PREDICTIONS, Absent, Predicted, ba_mals
from bias_pipeline.metrics.references import ZHAO_2017
from bias_pipeline.metrics.value_names import SCORE, PartName
from bias_pipeline.stats.shares import spread_of_small_shares

UNDEFINED = PartName("undefined")


@dataclass(eq=False, kw_only=True)
class BiasAmplificationMALS(LabelledTaskMetric, CountedInOneStep):
    """Bias amplification of Zhao et al. 2017 (``Men Also Like Shopping``), measured on captions.

    A group is usual for an object if more than 1/K of the object's images are labelled with the
    group. An object's growth is the usual groups' share in captions minus their share in labels.
    ``score`` is the mean growth, and ``object:NAME`` is the growth of one object.
    ``predictions:joint``, ``:task`` and ``:group`` are the score if captions decide both group and
    object, only the object, or only the group. The metric ignores how frequent each group is in the
    labels. Usual groups are found on some images, and growth is measured on the others.
    ``published:*`` uses the same images for both, as the paper does.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ba_mals",
        title="Bias amplification (MALS)",
        version=4,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, captions name objects with their usual groups more "
        "often than labels do",
        family="counting",
        streams=True,
        question="tasks",
        sources={ZHAO_2017: "section 3"},
        needs=("objects",),
        responses={
            "score": ExpectedResponse(moves=("object follows group",), stays=("biased annotators",))
        },
        says={
            "score": "objects occur with their usual {attribute} even more than in the labels",
        },
        readings={"score": EvidenceRule("score", named=True)},
        source_identifying=True,
        amplification=True,
    )

    predictions: Predicted = "joint"  # see `mals_tasks`
    absent: Absent = "drop"  # see `ba_mals`

    def rests_on_names(self, part: PartName) -> bool:
        """True for all numbers, but not for mention rates."""
        return part.what != "mentions"

    def tally(self, view: CorpusView) -> Tally:
        sides = self.sides(view)

        joint = cross_with_groups(sides.named, sides.predicted, sides.n_groups)
        named = np.asarray(joint.sum(axis=0)).reshape(sides.n_groups, -1).sum(axis=0)
        # A task that is named once has no direction on other images and adds nothing.
        factor = spread_of_small_shares(named[named >= 2])

        def numbers(sums: Sums) -> Numbers:
            def mean(values: Float64Array) -> CountedNumber:
                return CountedNumber(values=values, images=sides.images, widening=factor)

            folds = counts_of_folds(sums, sides.n_groups)
            counts = crossfit.sum_folds(folds)
            tasks = {
                how: crossfit.mals_tasks_of_folds(folds, predictions=how) for how in PREDICTIONS
            }
            means = {
                how: mean(crossfit.mean_of_tasks(change, self.absent))
                for how, change in tasks.items()
            }
            each = tasks[self.predictions]
            undefined = np.isnan(each).sum(axis=-1)
            return {
                SCORE: means[self.predictions],
                **{PartName("predictions", detail=how): one for how, one in means.items()},
                **{
                    PartName("published", detail=how): mean(ba_mals(counts, predictions=how))
                    for how in PREDICTIONS
                },
                UNDEFINED: CountedNumber(values=undefined, images=sides.images, unit=COUNT),
                **mention_rates(counts, sides.images),
                **CountedNumber(values=each, images=sides.images).by_object(view.tasks),
            }

        return Tally(
            sides.tables_of_folds(view.corpus.keys), numbers, audit={"objects": len(view.tasks)}
        )
