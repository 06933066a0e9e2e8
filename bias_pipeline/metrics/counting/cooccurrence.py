"""Co-occurrence compares which group an object is named with in captions and human captions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import TaskMetric, check_known, least_share, row_of
from bias_pipeline.metrics.counting.gold_counts import CountedInOneStep
from bias_pipeline.metrics.counting.numbers import COUNT, CountedNumber, Numbers, Sums, Tally
from bias_pipeline.metrics.counting.sides import (
    CaptionSides,
    Groups,
    by_group,
    cross_with_groups,
    keep_rows,
    mean_of,
)
from bias_pipeline.metrics.functional.counts import weighted_mean
from bias_pipeline.metrics.functional.groups import (
    bias_disparity,
    group_shares,
    mention_distance,
    skew,
)
from bias_pipeline.metrics.references import HENDRICKS_2018, LIN_2019, SESHADRI_2024, ZHAO_2017
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)

Aggregate = Literal["weighted", "per_object"]


UNDEFINED = PartName("undefined")


@dataclass(eq=False, kw_only=True)
class Cooccurrence(TaskMetric, CountedInOneStep):
    """How much more captions tie objects to one group than human captions do.

    A group's share is taken among captions that name the object and exactly one group. The object's
    skew is half the sum of |share - 1/K| over groups, so equal shares give 0. ``model`` and
    ``human`` are mean skews over objects, weighted by how often annotators name the object.
    ``score`` is the mean of the captioner's skew minus the annotators' skew. Which objects count
    depends only on human captions.

    * ``object:NAME``: the difference for one object. ``object:NAME:model``, ``:human``: the first
      group's share of captions that name the object.
    * ``disparity:GROUP:NAME``: bias disparity.
    * ``distance:GROUP``: the mean absolute difference between the rates at which captioner and
      annotators name objects.
    * ``undefined``: the number of objects that the captioner never names together with exactly one
      group.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="cooccurrence",
        title="Object-group co-occurrence",
        version=2,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, captions tie objects to one group more than human "
        "captions do",
        family="counting",
        streams=True,
        question="tasks",
        sources={
            SESHADRI_2024: "skew",
            ZHAO_2017: "an object's ratio",
            LIN_2019: "eq. 1-3: disparity",
            HENDRICKS_2018: "distance",
        },
        without={"human captions": MODEL},
        responses={
            "score": ExpectedResponse(moves=("object follows group",), stays=("biased annotators",))
        },
        says={
            "score": "objects occur with one {attribute} more than in human captions",
        },
        readings={
            "score": EvidenceRule("score", follows=("words", "vocabulary", "neutral"), named=True)
        },
        source_identifying=True,
        amplification=True,
    )

    # Whether the group of a caption is the one it names (`captions`; captions that name no group or
    # several are left out) or the image's label (`labels`)
    groups: Groups = "captions"
    numerator: str | None = None  # the group of the ratio (default: the first with a label)
    # An object counts in means if at least this share of human captions (of the captioner's if
    # there are no human captions) name it with one group; ours. See `least_share`
    min_support: NotNegative = 0.005
    # `weighted`: objects are weighted by how often annotators name them with one group, so that the
    # noise of rare objects matters little (ours); `per_object`: all objects have the same weight,
    # as published
    aggregate: Aggregate = "weighted"
    positions: Count = 5  # how many human captions of an image are used

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.numerator is not None:
            check_known("numerator", self.numerator, self.attribute.groups)

    def rests_on_names(self, part: PartName) -> bool:
        """True for all numbers, unless groups come from image labels."""
        return self.groups == "captions"

    def tally(self, view: CorpusView) -> Tally:
        sides = CaptionSides.from_view(view, self.positions)
        n_groups = len(view.groups)

        def table(side: str, chosen: BoolArray) -> sparse.csr_array:
            named = view.named_group(side)
            group = named if self.groups == "captions" else view.codes[view.images(side)]
            pairs = cross_with_groups(np.where(chosen, group, -1), view.mentions(side), n_groups)
            return view.by_image(side, pairs)

        tables = sides.tables(view, table)
        supported = self._supported_objects(view, sides, tables)
        notes = sides.notes
        if HUMAN_PAIRED in sides.images and view.has_objects:
            if view.object_fault:
                notes.append(f"no distances: {view.object_fault}")
            else:
                tables |= _rate_tables(view, sides, tables)

        first = row_of(self.numerator, view)
        both, described = sides.paired_images, sides.paired_images & view.objects_known

        def numbers(sums: Sums) -> Numbers:
            pairs = {
                part: [by_group(table, n_groups) for table in sides.position_sums(part, sums)]
                for part in sides.images
            }
            skews = {
                part: mean_of([skew(counts) for counts in each]) for part, each in pairs.items()
            }
            pooled = {part: np.sum(each, axis=0) for part, each in pairs.items()}
            named = pooled[HUMAN if HUMAN in pooled else MODEL].sum(axis=-2)
            weights = np.zeros_like(named)  # (B, T), 0 for objects that do not count
            weights[:, supported] = named[:, supported] if self.aggregate == "weighted" else 1.0
            values = {
                part: sides.number(part, weighted_mean(of_objects, weights))
                for part, of_objects in skews.items()
            }
            values[UNDEFINED] = sides.number(MODEL, np.isnan(skews[MODEL]).sum(axis=-1), COUNT)
            for part in [part for part in (MODEL, HUMAN) if part in pooled]:
                ratios = sides.number(part, group_shares(pooled[part])[:, first])
                values |= ratios.by_object(view.tasks, side=part.side)
            if HUMAN_PAIRED in pairs:
                increase = skews[MODEL_PAIRED] - skews[HUMAN_PAIRED]
                score = weighted_mean(increase, weights)
                values[SCORE] = CountedNumber(values=score, images=both)
                values |= CountedNumber(values=increase, images=both).by_object(view.tasks)
                disparity = bias_disparity(pooled[MODEL_PAIRED], pooled[HUMAN_PAIRED])
                for k, group in enumerate(view.groups):
                    number = CountedNumber(values=disparity[:, k], images=both, unit="change")
                    values |= number.by_object(view.tasks, "disparity", group=group)
            if "images" in sums:
                model, human = (by_group(sums[f"rates:{side}"], n_groups) for side in SIDES)
                distances = mention_distance(model, human, sums["images"])
                distance = CountedNumber(values=distances, images=described, range=(0.0, np.inf))
                values |= distance.by_group(view.groups, "distance")
            return values

        return Tally(
            tables,
            numbers,
            audit={"objects_without_support": len(view.tasks) - len(supported)},
            notes=notes,
        )

    @property
    def object_tasks(self) -> TaskVocabulary:
        """All tasks, since ``distance`` and naming rates depend on which images have the object."""
        return self.task

    def _supported_objects(
        self, view: CorpusView, sides: CaptionSides, tables: dict[str, sparse.csr_array]
    ) -> IntArray:
        part = HUMAN if HUMAN in sides.images else MODEL
        sums = {
            name: np.asarray(table.sum(axis=0), np.float64)[None] for name, table in tables.items()
        }
        named = [
            by_group(table, len(view.groups))[0].sum(axis=0)
            for table in sides.position_sums(part, sums)
        ]
        n_images = int(sides.images[part].sum())
        least = least_share(self.min_support, n_images)
        supported = np.flatnonzero(np.sum(named, axis=0) / (len(named) * n_images) >= least)
        if not len(supported):
            too_few_named = view.too_few_named("model") if self.rests_on_names(SCORE) else ""
            raise NotApplicableError(
                too_few_named
                or f"no object is named with one group in {100 * least:.2g} % of {part.side} "
                "captions; lower metric.min_support"
            )
        return supported


def _rate_tables(
    view: CorpusView, sides: CaptionSides, tables: Mapping[str, sparse.csr_array]
) -> dict[str, sparse.csr_array]:
    """The tables from which naming rates are computed, for images whose objects are known."""
    known = sides.images[HUMAN_PAIRED] & view.objects_known
    rates = {"images": keep_rows(view.objects, known)}
    for part in (MODEL_PAIRED, HUMAN_PAIRED):
        names = sides.keys(part)
        named = tables[names[0]]
        for name in names[1:]:
            named = sparse.csr_array(named + tables[name])
        rates[f"rates:{part.side}"] = keep_rows(sparse.csr_array(named / len(names)), known)
    return rates
