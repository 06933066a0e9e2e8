"""Measures how often captions name the wrong group (gender error) or the right group (accuracy).

Gender error says whether captions misgender. Group accuracy says whether one group is named
correctly more often than another.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView, group_task_cells
from bias_pipeline.metrics.counting.base import example_lines
from bias_pipeline.metrics.counting.gold import CorrectedByGold, Tables, named_outcomes
from bias_pipeline.metrics.counting.numbers import (
    CountedNumber,
    LargestGap,
    Numbers,
    Sums,
    Tally,
    counted_share,
)
from bias_pipeline.metrics.counting.sides import described_images
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.references import BAKR_2024, HENDRICKS_2018
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)

Over = Literal["all", "named"]
NAMED, NAMED_HUMAN = PartName("named"), PartName("named", side="human")
NAMED_INCREASE = PartName("named", detail="increase")
# On images that both sides describe; these parts exist if one side describes more images.
NAMED_PAIRED = (
    PartName("named", side="model", detail="paired"),
    PartName("named", side="human", detail="paired"),
)


class OutcomeMetric(CorrectedByGold):
    """A metric that compares the groups that captions name with labelled groups."""

    @abstractmethod
    def images_by_part(self, view: CorpusView) -> dict[PartName, BoolArray]:
        """For each number, (N,) flags of the labelled images from which it is computed."""

    @abstractmethod
    def numbers(
        self,
        counts: Mapping[PartName, Float64Array],
        images: Mapping[PartName, BoolArray],
        view: CorpusView,
    ) -> Numbers:
        """The metric's numbers, from the (B, K, K + 1) counts of each part."""

    def tally(self, view: CorpusView) -> Tally:
        images, n_groups = self.images_by_part(view), len(view.groups)
        tables, shape = {}, (n_groups, n_groups + 1)  # the last outcome means no group or several
        for part, of_part in images.items():
            rows, cells = view.images(part.side), view.named_group(part.side)
            cells[cells < 0] = n_groups
            cells += view.codes[rows] * (n_groups + 1)
            chosen, width = of_part[rows], n_groups * (n_groups + 1)
            if not chosen.all():
                rows, cells = rows[chosen], cells[chosen]
            tables[str(part)] = group_task_cells(rows, cells, (len(view.corpus), width))

        def numbers(sums: Sums) -> Numbers:
            return self.numbers({p: sums[p].reshape(-1, *shape) for p in images}, images, view)

        return Tally(tables, numbers)

    def by_true_label(self, tables: Tables, view: CorpusView) -> Numbers:
        images, n_groups = self.images_by_part(view), len(view.groups)
        counts = {part: named_outcomes(tables[part], n_groups) for part in images}
        return self.numbers(counts, images, view)


@dataclass(eq=False, kw_only=True)
class GenderError(OutcomeMetric):
    """Share of labelled images whose caption names a group other than the labelled one.

    A caption that names no group or several groups is not wrong, so naming nobody is no error.
    ``named`` is the error among captions that name exactly one group.

    * ``human``, ``named:human``: the annotators' errors.
    * ``named:increase``: the captioner's error minus the annotators' error, on the images that both
      describe.
    * ``group:NAME``, ``named:NAME``: the errors on a group's images.

    ``misnamed.csv`` has examples.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_error",
        title="Gender error",
        version=3,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; at 0, no caption names the wrong group",
        family="counting",
        streams=True,
        question="misgendering",
        sources={HENDRICKS_2018: "section 4", BAKR_2024: "Table 3"},
        responses={
            "score": ExpectedResponse(
                moves=("group follows object", "women called men"),
                stays=("object follows group",),
                absent=("names no group", "no group instead of wrong"),
            )
        },
        says={
            "score": "share of the captions naming one {attribute} that name the wrong one",
        },
        readings={"score": EvidenceRule("named", named=True)},
    )

    # Which word list names a group; see `CountingMetric`. Published cells were made with Hendricks'
    words: str | None = "hendricks"
    # Whether `score` divides by `all` labelled images or only by images whose caption `named` one
    # group (a second function of the public code)
    over: Over = "all"

    def tally(self, view: CorpusView) -> Tally:
        examples = _misnamed_lines(view)
        return replace(super().tally(view), lines={"misnamed": examples} if examples else {})

    def images_by_part(self, view: CorpusView) -> dict[PartName, BoolArray]:
        """The images of each number; ``:paired`` numbers exist only if the sides' images differ."""
        images = described_images(view, view.labelled)
        if all((mask == images[MODEL]).all() for mask in images.values()):
            return {part: mask for part, mask in images.items() if not part.detail}
        return images

    def numbers(
        self,
        counts: Mapping[PartName, Float64Array],
        images: Mapping[PartName, BoolArray],
        view: CorpusView,
    ) -> Numbers:
        def error(part: PartName, over: Over = "named") -> CountedNumber:
            wrong, whole = (n.sum(axis=-1) for n in groups.wrongly_named(counts[part], over))
            return counted_share(wrong, whole, images[part], part.side)

        values = {SCORE: error(MODEL, self.over), NAMED: error(MODEL)}
        if HUMAN in images:
            values |= {HUMAN: error(HUMAN, self.over), NAMED_HUMAN: error(HUMAN)}
        if view.labelled[view.has("model") & view.has("human")].any():
            one, other = (NAMED, NAMED_HUMAN)
            if MODEL_PAIRED in images:
                one, other = NAMED_PAIRED
                values |= {one: error(MODEL_PAIRED), other: error(HUMAN_PAIRED)}
            values[NAMED_INCREASE] = values[one] - values[other]
        for k, group in enumerate(view.groups):
            for what, over in (("", "all"), ("named", "named")):
                wrong, whole = groups.wrongly_named(counts[MODEL], over)
                values[PartName(what, group=group)] = counted_share(
                    wrong[:, k], whole[:, k], images[MODEL]
                )
        return values


def _misnamed_lines(view: CorpusView) -> list[dict[str, object]]:
    named, labelled = view.named_group("model"), view.codes[view.images("model")]
    wrong = np.flatnonzero((labelled >= 0) & (named >= 0) & (named != labelled))
    return example_lines(view, wrong, {"labelled": labelled, "named": named}, "wrong")


_OUTCOMES = ("", "incorrect", "other")  # the name of the correct share is only the group's name
DIVERGENCE = PartName("divergence")


@dataclass(eq=False, kw_only=True)
class GroupAccuracy(OutcomeMetric):
    """Gap between groups in the share of images whose caption names the right group.

    ``group:NAME`` is the share for one group. ``incorrect:NAME`` is the share of the group's images
    whose caption names a wrong group, and ``other:NAME`` the share whose caption names no group or
    several groups. ``divergence`` is the Jensen-Shannon divergence, in bits, between the groups'
    distributions of these three outcomes. ``human`` is the score of human captions.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="group_accuracy",
        title="Gap in group accuracy",
        version=2,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; at 0, captions name the right group equally often for all "
        "groups",
        family="counting",
        streams=True,
        question="misgendering",
        sources={HENDRICKS_2018: "section 4 (outcome divergence)"},
        ours="the gap is",
        responses={
            "score": ExpectedResponse(
                moves=("women called men",),
                stays=("object follows group",),
                absent=("names no group", "no group instead of wrong"),
            )
        },
        says={
            "score": "groups differ in how often they are named correctly",
        },
    )

    words: str | None = "hendricks"  # see `CountingMetric`; Hendricks et al. count with their list

    def tally(self, view: CorpusView) -> Tally:
        view.check_compared(view.codes[view.labelled & view.has("model")])
        return super().tally(view)

    def images_by_part(self, view: CorpusView) -> dict[PartName, BoolArray]:
        images = described_images(view, view.labelled)
        return {part: mask for part, mask in images.items() if not part.detail}

    def numbers(
        self,
        counts: Mapping[PartName, Float64Array],
        images: Mapping[PartName, BoolArray],
        view: CorpusView,
    ) -> Numbers:
        def shares(part: PartName, outcome: str = "") -> dict[PartName, CountedNumber]:
            by_outcome = groups.by_outcome(counts[part])
            events, whole = by_outcome[..., _OUTCOMES.index(outcome)], by_outcome.sum(axis=-1)
            share = counted_share(events, whole, images[part], part.side)
            return share.by_group(view.groups, outcome)

        right = shares(MODEL)
        score = LargestGap(groups=[*right.values()], images=images[MODEL])
        values: dict[PartName, CountedNumber | LargestGap] = {SCORE: score}
        rates = groups.rates(counts[MODEL])
        values[DIVERGENCE] = CountedNumber(
            values=groups.divergence(rates[:, view.compared_groups(images[MODEL])]),
            images=images[MODEL],
            unit="bits",
            range=(0.0, math.log2(len(view.groups))),
        )
        if HUMAN in images:
            people = [*shares(HUMAN).values()]
            values[HUMAN] = LargestGap(groups=people, images=images[HUMAN], side="human")
        return values | right | shares(MODEL, "incorrect") | shares(MODEL, "other")
