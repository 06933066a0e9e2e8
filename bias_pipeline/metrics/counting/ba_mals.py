"""BA_MALS: do objects go with the groups they lean to more than in the labels?"""

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
    ABSENT,
    PREDICTIONS,
    mals,
    mals_tasks,
)
from bias_pipeline.metrics.parts import SCORE, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.metrics.sources import ZHAO_2017
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.shares import spread_of_small_shares

UNDEFINED = PartName("undefined")
READINGS = tuple(PartName("predictions", detail=how) for how in PREDICTIONS)


class BiasAmplificationMALS(LabelledTaskMetric):
    """Bias amplification of Zhao et al. 2017 (``Men Also Like Shopping``), on captions.

    ``score`` averages over objects how much the share of the groups an object leans to (more than
    1/K of its labelled images) grows from labels to captions. ``object:NAME`` is what an object
    adds; ``predictions:*`` are the score under each reading of the predicted share; ``undefined``
    counts objects whose share is 0/0 in labels or captions. Base rates of the groups are ignored,
    the critique that led to BA->.

    Args:
        attribute: see :class:`~bias_pipeline.metrics.counting.labels.LabelledTaskMetric`.
        task: see there.
        stats: see there.
        labels: see there.
        groups: see there.
        unclear: see there.
        predictions: see :func:`~bias_pipeline.metrics.functional.amplification.mals_tasks`.
        absent: see :func:`~bias_pipeline.metrics.functional.amplification.mals`.
        words: see :class:`~bias_pipeline.metrics.counting.labels.LabelledTaskMetric`.
        exclude_tasks: see there.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ba_mals",
        title="Bias amplification (MALS)",
        version=3,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 objects lean to their groups more than in the labels",
        family="counting",
        question="tasks",
        sources={ZHAO_2017: "section 3"},
        needs=("objects",),
        responses={"score": Response(moves=("object follows group",), stays=("biased people",))},
        says={
            "score": "objects lean to the {attribute} they lean to anyway",
        },
        readings={"score": Reading("score", named=True)},
        source_identifying=True,
        amplification=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        stats: Bootstrap,
        labels: str = "objects",
        groups: str = "labels",
        unclear: str = "keep",
        predictions: str = "joint",
        absent: str = "keep",
        words: str | None = None,
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        super().__init__(attribute, task, stats, labels, groups, unclear, words, exclude_tasks)
        self.predictions = choice("predictions", predictions, PREDICTIONS)
        self.absent = choice("absent", absent, ABSENT)

    def rests_on_names(self, part: PartName) -> bool:
        """All but how much is mentioned."""
        return part.what != "mentions"

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        sides = self.sides(seen)

        def numbers(sums: Sums) -> dict[PartName, FloatArray]:
            counts = counts_of(sums, sides.n_groups)
            each = mals_tasks(counts, predictions=self.predictions)
            values = {SCORE: mals(counts, predictions=self.predictions, absent=self.absent)}
            values |= {
                reading: mals(counts, predictions=how, absent=self.absent)
                for how, reading in zip(PREDICTIONS, READINGS, strict=True)
            }
            values |= {UNDEFINED: np.isnan(each).sum(axis=-1), **mention_rates(counts)}
            return values | {PartName(object=o): each[:, t] for t, o in enumerate(seen.tasks)}

        tables = sides.tables()
        named = np.asarray(tables["joint"].sum(axis=0)).reshape(sides.n_groups, -1).sum(axis=0)
        factor = spread_of_small_shares(named)
        return Tally(
            tables=tables,
            numbers=numbers,
            about=About(sides.images),
            parts={
                UNDEFINED: About(sides.images, unit=COUNT),
                **mentions_about(sides.images),
            },
            audit={"objects": len(seen.tasks)},
            widening=dict.fromkeys(
                (SCORE, *(PartName("predictions", detail=how) for how in PREDICTIONS)), factor
            ),
        )
