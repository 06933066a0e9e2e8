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

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView, group_task_cells
from bias_pipeline.metrics.counting.base import (
    SHARE,
    CountingMetric,
    CountSpec,
    Sums,
    ValueBasis,
)
from bias_pipeline.metrics.counting.sides import LargestGap, only, totals
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.references import BAKR_2023, HENDRICKS_2018
from bias_pipeline.metrics.value_names import HUMAN, SCORE, PartName

Over = Literal["all", "named"]
MOST_EXAMPLES = 12
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

    def tally(self, view: CorpusView) -> CountSpec:
        """See the class."""
        sides = [side for side in SIDES if (view.labelled & view.has(side)).any()]
        about = {
            side: ValueBasis(view.labelled & view.has(side), side, range=SHARE) for side in sides
        }
        n_groups = len(view.groups)
        tables: dict[str, sparse.csr_array] = {side: outcome_table(view, side) for side in sides}
        both = view.labelled & view.has("model") & view.has("human")
        errors: dict[PartName, tuple[str, Over]] = {
            SCORE: ("model", self.over),
            NAMED: ("model", "named"),
            HUMAN: ("human", self.over),
            NAMED_HUMAN: ("human", "named"),
        }
        compared = (NAMED, NAMED_HUMAN)
        if both.any() and any((about[side].images != both).any() for side in sides):
            compared = NAMED_PAIRED
            errors |= {part: (f"{part.side}:paired", "named") for part in compared}
            tables |= {f"{side}:paired": only(tables[side], both) for side in sides}
        errors = {part: error for part, error in errors.items() if error[0] in tables}

        def numbers(sums: Sums) -> dict[PartName, Float64Array]:
            counts = {name: outcomes_of(sums[name], n_groups) for name in tables}
            values = {
                part: groups.gender_error(counts[name], over)
                for part, (name, over) in errors.items()
            }
            if both.any():
                values[NAMED_INCREASE] = values[compared[0]] - values[compared[1]]
            rates = groups.rates(counts["model"])
            named = counts["model"][..., :-1].sum(axis=-1)
            right = np.diagonal(counts["model"], axis1=-2, axis2=-1)
            with np.errstate(invalid="ignore"):
                wrong = 1 - right / named
            return values | {
                part: shares[:, a]
                for a, g in enumerate(view.groups)
                for part, shares in (
                    (PartName(group=g), rates[..., 1]),
                    (PartName("named", group=g), wrong),
                )
            }

        def observations(sums: Sums) -> dict[PartName, Float64Array]:
            counts = {name: outcomes_of(sums[name], n_groups) for name in tables}
            of_groups = counts["model"].sum(axis=-1)
            named = counts["model"][..., :-1].sum(axis=-1)
            return {
                part: (counts[name] if over == "all" else counts[name][..., :-1]).sum(axis=(-2, -1))
                for part, (name, over) in errors.items()
            } | {
                part: observed[:, a]
                for a, g in enumerate(view.groups)
                for part, observed in (
                    (PartName(group=g), of_groups),
                    (PartName("named", group=g), named),
                )
            }

        return CountSpec(
            tables=tables,
            numbers=numbers,
            about=about["model"],
            parts={
                HUMAN: about[sides[-1]],
                NAMED_HUMAN: about[sides[-1]],
                NAMED_INCREASE: ValueBasis(both),
                **{part: ValueBasis(both, part.side, range=SHARE) for part in NAMED_PAIRED},
            },
            observations=observations,
            differences={NAMED_INCREASE: compared},
        )

    def caption_tables(self, view: CorpusView) -> Mapping[str, Sequence[Mapping[str, object]]]:
        """See the class."""
        lines = misnamed(view)
        return {"misnamed": lines} if lines else {}


def misnamed(view: CorpusView) -> list[dict[str, object]]:
    """Captions of the model that name another group than the labelled one; a few examples.

    They are drawn by a hash of their images' ids, so any order of the input gives the same.
    """
    captions, named = view.corpus.side("model"), view.named("model")
    labelled = view.codes[captions.image_rows]
    wrong = np.flatnonzero((labelled >= 0) & (named >= 0) & (named != labelled))
    keys = view.corpus.keys[captions.image_rows[wrong]]
    chosen = wrong[np.argsort(keys, kind="stable")[:MOST_EXAMPLES]]
    return [
        {
            "image_id": view.corpus.ids[captions.image_rows[i]],
            "labelled": view.groups[labelled[i]],
            "named": view.groups[named[i]],
            "caption": captions.text(i),
            "wrong": len(wrong),
        }
        for i in chosen.tolist()
    ]


def outcome_table(view: CorpusView, side: str) -> sparse.csr_array:
    """(N, K * (K + 1)) which group each labelled image's captions name, none and several last."""
    n_groups = len(view.groups)
    images, named = view.images(side), view.named(side)
    labelled = view.labelled[images]
    column = np.where(named < 0, n_groups, named) + view.codes[images] * (n_groups + 1)
    shape = (len(view.corpus), n_groups * (n_groups + 1))
    return group_task_cells(images[labelled], column[labelled], shape)


def outcomes_of(sums: Float64Array, n_groups: int) -> Float64Array:
    """(B, K, K + 1) from sums of :func:`outcome_table`."""
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

    def tally(self, view: CorpusView) -> CountSpec:
        """See the class."""
        view.check_compared(view.codes[view.labelled & view.has("model")])
        sides = [side for side in SIDES if (view.labelled & view.has(side)).any()]
        about = {
            side: ValueBasis(view.labelled & view.has(side), side, range=SHARE) for side in sides
        }

        compared = view.compared(about["model"].images)
        n_groups = len(view.groups)
        tables: dict[str, sparse.csr_array] = {side: outcome_table(view, side) for side in sides}
        shares = {
            PartName(outcome, group=name): (a, c)
            for c, outcome in enumerate(_OUTCOMES)
            for a, name in enumerate(view.groups)
        }

        def rates_of(sums: Float64Array) -> Float64Array:
            return groups.rates(outcomes_of(sums, n_groups))

        gaps = {
            side: LargestGap.of(rates_of(totals(table))[0, :, 0]) for side, table in tables.items()
        }

        def numbers(sums: Sums) -> dict[PartName, Float64Array]:
            rates = {side: rates_of(sums[side]) for side in tables}
            values = {
                SCORE: gaps["model"].under(rates["model"][..., 0]),
                DIVERGENCE: groups.divergence(rates["model"][:, compared]),
            }
            if "human" in rates:
                values[HUMAN] = gaps["human"].under(rates["human"][..., 0])
            return values | {part: rates["model"][:, a, c] for part, (a, c) in shares.items()}

        def observations(sums: Sums) -> dict[PartName, Float64Array]:
            of_groups = outcomes_of(sums["model"], n_groups).sum(axis=-1)
            return {part: of_groups[:, a] for part, (a, _) in shares.items()}

        gap = gaps["model"]
        highest, lowest = (PartName(group=view.groups[k]) for k in (gap.highest, gap.lowest))
        most = math.log2(n_groups)
        bits = ValueBasis(about["model"].images, unit="bits", range=(0.0, most))
        return CountSpec(
            tables=tables,
            numbers=numbers,
            about=about["model"],
            parts={DIVERGENCE: bits, HUMAN: about[sides[-1]]},
            observations=observations,
            differences={SCORE: (highest, lowest)} if gap.chosen_from > 2 else {},
            chosen_from={
                SCORE if side == "model" else HUMAN: gap.chosen_from for side, gap in gaps.items()
            },
        )
