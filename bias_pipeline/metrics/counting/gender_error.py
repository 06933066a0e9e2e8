"""Gender error: how often a caption names the wrong group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.base import EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView, group_task_cells
from bias_pipeline.metrics.counting.base import (
    SHARE,
    CountingMetric,
    CountSpec,
    Sums,
    ValueBasis,
    choice,
)
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.references import BAKR_2023, HENDRICKS_2018
from bias_pipeline.metrics.value_names import HUMAN, SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap

OVER = ("all", "named")
MOST_EXAMPLES = 12
NAMED, NAMED_HUMAN = PartName("named"), PartName("named", side="human")
NAMED_INCREASE = PartName("named", detail="increase")


class GenderError(CountingMetric):
    """Images whose caption names another group than the labelled one, over all labelled images.

    A caption that names no group or several is not wrong, so neutral captions lower the error: read
    it with the neutral rate. If almost no caption names a group there is no error. ``human`` is
    the same of people's captions, ``named`` the error over captions that name one group alone,
    which neutral captions do not lower, ``named:human`` people's and ``named:increase`` their
    difference, ``group:NAME`` the error on a group's images. Works for any number of groups. The
    table ``misnamed`` has at most a dozen captions that name the wrong group.

    Args:
        attribute: whose groups count.
        stats: how intervals are made.
        words: which word list names a group; see
            :class:`~bias_pipeline.metrics.counting.base.CountingMetric`. Published cells were
            made with Hendricks'.
        over: what ``score`` divides by: ``all`` labelled images, or those whose caption ``named``
            one group (a second function of the public code).
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
            "score": "of captions that name one {attribute}, those that name the wrong one",
        },
        readings={"score": EvidenceRule("named", named=True)},
    )

    def __init__(
        self,
        attribute: Attribute,
        stats: Bootstrap,
        words: str | None = "hendricks",
        over: str = "all",
    ) -> None:
        super().__init__(attribute, stats, words)
        self.over = choice("over", over, OVER)

    def tally(self, view: CorpusView) -> CountSpec:
        """See the class."""
        sides = [side for side in SIDES if (view.labelled & view.has(side)).any()]
        about = {
            side: ValueBasis(view.labelled & view.has(side), side, range=SHARE) for side in sides
        }
        n_groups = len(view.groups)

        def numbers(sums: Sums) -> dict[PartName, Float64Array]:
            counts = {side: outcomes_of(sums[side], n_groups) for side in sides}
            rates = groups.rates(counts["model"])
            values = {
                SCORE: groups.gender_error(counts["model"], self.over),
                NAMED: groups.gender_error(counts["model"], "named"),
            }
            if "human" in counts:
                values[HUMAN] = groups.gender_error(counts["human"], self.over)
                values[NAMED_HUMAN] = groups.gender_error(counts["human"], "named")
                values[NAMED_INCREASE] = values[NAMED] - values[NAMED_HUMAN]
            return values | {PartName(group=g): rates[:, a, 1] for a, g in enumerate(view.groups)}

        def observations(sums: Sums) -> dict[PartName, Float64Array]:
            counts = {side: outcomes_of(sums[side], n_groups) for side in sides}
            whole = {side: table.sum(axis=(-2, -1)) for side, table in counts.items()}
            named = {side: table[..., :-1].sum(axis=(-2, -1)) for side, table in counts.items()}
            over = whole if self.over == "all" else named
            counts_of = {SCORE: over["model"], NAMED: named["model"]}
            if "human" in counts:
                counts_of |= {HUMAN: over["human"], NAMED_HUMAN: named["human"]}
            of_groups = counts["model"].sum(axis=-1)
            return counts_of | {
                PartName(group=g): of_groups[:, a] for a, g in enumerate(view.groups)
            }

        return CountSpec(
            tables={side: outcome_table(view, side) for side in sides},
            numbers=numbers,
            about=about["model"],
            parts={
                HUMAN: about[sides[-1]],
                NAMED_HUMAN: about[sides[-1]],
                NAMED_INCREASE: ValueBasis(about["model"].images),
            },
            observations=observations,
            differences={NAMED_INCREASE: (NAMED, NAMED_HUMAN)},
        )

    def examples(self, view: CorpusView) -> Mapping[str, Sequence[Mapping[str, object]]]:
        """See the class."""
        lines = misnamed(view)
        return {"misnamed": lines} if lines else {}


def misnamed(view: CorpusView, most: int = MOST_EXAMPLES) -> list[dict[str, object]]:
    """Captions of the model that name another group than the labelled one.

    Args:
        view: what captions say.
        most: how many; they are drawn by a hash of their images' ids, so any order of the input
            gives the same.
    """
    captions, named = view.corpus.side("model"), view.named("model")
    labelled = view.codes[captions.image_rows]
    wrong = np.flatnonzero((labelled >= 0) & (named >= 0) & (named != labelled))
    chosen = wrong[np.argsort(view.corpus.keys[captions.image_rows[wrong]], kind="stable")[:most]]
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
