"""Gender error and group accuracy: how often captions name the wrong group, or the right one.

Gender error asks whether captions misgender, group accuracy whether one group is named correctly
more often than another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView, group_task_cells
from bias_pipeline.metrics.counting.base import CountingMetric, example_lines
from bias_pipeline.metrics.counting.numbers import (
    CountedNumber,
    LargestGap,
    Numbers,
    Sums,
    Tally,
    counted_share,
)
from bias_pipeline.metrics.counting.sides import only
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.references import BAKR_2023, HENDRICKS_2018
from bias_pipeline.metrics.value_names import HUMAN, SCORE, PartName

Over = Literal["all", "named"]
NAMED, NAMED_HUMAN = PartName("named"), PartName("named", side="human")
NAMED_INCREASE = PartName("named", detail="increase")
# On the images that both sides describe; parts where one side describes more.
NAMED_PAIRED = (
    PartName("named", side="model", detail="paired"),
    PartName("named", side="human", detail="paired"),
)


@dataclass(eq=False, kw_only=True)
class GenderError(CountingMetric):
    """Images whose caption names another group than the labelled one, over all labelled images.

    A caption that names no group or several is not wrong, so neutral captions lower the error: read
    it with the neutral rate. If almost no caption names a group there is no error. ``human`` is
    the same of people's captions, ``named`` the error over captions that name one group alone,
    which neutral captions do not lower, ``named:human`` people's and ``named:increase`` their
    difference on the images that both describe (``named:model:paired``, ``named:human:paired``
    where one describes more), ``group:NAME`` the error on a group's images, ``named:NAME`` that
    over its captions that name one group. Works for any number of groups. The table ``misnamed``
    has at most a dozen captions that name the wrong group.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_error",
        title="Gender error",
        version=3,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; 0: no caption names the wrong group",
        family="counting",
        question="misgendering",
        sources={HENDRICKS_2018: "section 4", BAKR_2023: "Table 3"},
        responses={
            "score": ExpectedResponse(
                moves=("group follows object", "women called men"),
                stays=("object follows group",),
                absent=("neutral alone", "neutral instead of wrong"),
            )
        },
        says={
            "score": "share of the captions naming one {attribute} that name the wrong one",
        },
        readings={"score": EvidenceRule("named", named=True)},
    )

    # Which word list names a group; see `CountingMetric`. Published cells were made with Hendricks'
    words: str | None = "hendricks"
    # What `score` divides by: `all` labelled images, or those whose caption `named` one group (a
    # second function of the public code)
    over: Over = "all"

    def tally(self, view: CorpusView) -> Tally:
        """See the class."""
        tables, n_groups = outcome_tables(view), len(view.groups)
        images = {side: view.labelled & view.has(side) for side in tables}
        both = view.labelled & view.has("model") & view.has("human")
        paired = both.any() and any((mask != both).any() for mask in images.values())
        if paired:
            tables |= {f"{side}:paired": only(tables[side], both) for side in images}

        def numbers(sums: Sums) -> Numbers:
            counts = {table: outcomes_of(sums[table], n_groups) for table in tables}

            def error(side: str, table: str, of: BoolArray, over: Over) -> CountedNumber:
                wrong, whole = groups.wrongly_named(counts[table], over)
                return counted_share(wrong.sum(axis=-1), whole.sum(axis=-1), of, side)

            values: dict[PartName, CountedNumber] = {}
            for side, every, named in (("model", SCORE, NAMED), ("human", HUMAN, NAMED_HUMAN)):
                if side in images:
                    values[every] = error(side, side, images[side], self.over)
                    values[named] = error(side, side, images[side], "named")
            if paired:
                for part in NAMED_PAIRED:
                    values[part] = error(part.side, f"{part.side}:paired", both, "named")
            if both.any():
                one, other = NAMED_PAIRED if paired else (NAMED, NAMED_HUMAN)
                values[NAMED_INCREASE] = values[one] - values[other]
            for k, group in enumerate(view.groups):
                for what, over in (("", "all"), ("named", "named")):
                    wrong, whole = groups.wrongly_named(counts["model"], over)
                    values[PartName(what, group=group)] = counted_share(
                        wrong[:, k], whole[:, k], images["model"]
                    )
            return values

        return Tally(tables, numbers)

    def caption_tables(self, view: CorpusView) -> Mapping[str, Sequence[Mapping[str, object]]]:
        """See the class."""
        rows, named = view.images("model"), view.named("model")
        labelled = view.codes[rows]
        wrong = np.flatnonzero((labelled >= 0) & (named >= 0) & (named != labelled))
        lines = example_lines(view, wrong, {"labelled": labelled, "named": named}, "wrong")
        return {"misnamed": lines} if lines else {}


def outcome_tables(view: CorpusView) -> dict[str, sparse.csr_array]:
    """(N, K * (K + 1)) which group captions of labelled images name, none and several last.

    Sides without captions of labelled images are left out.
    """
    tables: dict[str, sparse.csr_array] = {}
    n_groups = len(view.groups)
    for side in SIDES:
        images, named = view.images(side), view.named(side)
        labelled = view.labelled[images]
        column = np.where(named < 0, n_groups, named) + view.codes[images] * (n_groups + 1)
        shape = (len(view.corpus), n_groups * (n_groups + 1))
        if labelled.any():
            tables[side] = group_task_cells(images[labelled], column[labelled], shape)
    return tables


def outcomes_of(sums: Float64Array, n_groups: int) -> Float64Array:
    """(B, K, K + 1) from sums of :func:`outcome_tables`."""
    return sums.reshape(len(sums), n_groups, n_groups + 1)


_OUTCOMES = ("", "incorrect", "other")  # the correct share has the plain group name
DIVERGENCE = PartName("divergence")


@dataclass(eq=False, kw_only=True)
class GroupAccuracy(CountingMetric):
    """Largest minus smallest share of a group's images whose caption names that group.

    ``group:NAME`` is the share named correctly, ``incorrect:NAME`` wrongly; ``other:NAME`` is that
    of captions that name no group or several; the three sum to 1. ``divergence`` is the
    Jensen-Shannon divergence of the groups' triples in bits, ``human`` the score of people's
    captions. Works for any number of groups; those without images are left out. Of more than two
    the interval of the gap is corrected for all pairs (Bonferroni).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="group_accuracy",
        title="Gap in group accuracy",
        version=2,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; 0: all groups are named correctly equally often",
        family="counting",
        question="misgendering",
        sources={HENDRICKS_2018: "section 4 (outcome divergence)"},
        ours="the gap is",
        responses={
            "score": ExpectedResponse(
                moves=("women called men",),
                stays=("object follows group",),
                absent=("neutral alone", "neutral instead of wrong"),
            )
        },
        says={
            "score": "groups differ in how often they are named correctly",
        },
    )

    words: str | None = "hendricks"  # see `CountingMetric`; Hendricks et al. count with their list

    def tally(self, view: CorpusView) -> Tally:
        """See the class."""
        view.check_compared(view.codes[view.labelled & view.has("model")])
        tables, n_groups = outcome_tables(view), len(view.groups)
        images = {side: view.labelled & view.has(side) for side in tables}
        compared = view.compared(images["model"])

        def numbers(sums: Sums) -> Numbers:
            def shares(side: str, outcome: str = "") -> dict[PartName, CountedNumber]:
                counts = groups.by_outcome(outcomes_of(sums[side], n_groups))
                events, whole = counts[..., _OUTCOMES.index(outcome)], counts.sum(axis=-1)
                share = counted_share(events, whole, images[side], side)
                return share.by_group(view.groups, outcome)

            right = shares("model")
            score = LargestGap(groups=[*right.values()], images=images["model"])
            values: dict[PartName, CountedNumber | LargestGap] = {SCORE: score}
            rates = groups.rates(outcomes_of(sums["model"], n_groups))
            values[DIVERGENCE] = CountedNumber(
                values=groups.divergence(rates[:, compared]),
                images=images["model"],
                unit="bits",
                range=(0.0, math.log2(n_groups)),
            )
            if "human" in tables:
                people = [*shares("human").values()]
                values[HUMAN] = LargestGap(groups=people, images=images["human"], side="human")
            return values | right | shares("model", "incorrect") | shares("model", "other")

        return Tally(tables, numbers)
