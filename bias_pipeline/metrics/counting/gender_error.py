"""Gender error: how often a caption names the wrong group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.base import MetricInfo, Reading, Response
from bias_pipeline.metrics.counting.tally import (
    SHARE,
    About,
    CountingMetric,
    FloatArray,
    Sums,
    Tally,
    choice,
)
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.parts import HUMAN, SCORE, PartName
from bias_pipeline.metrics.seen import Seen, cells
from bias_pipeline.metrics.sources import BAKR_2023, HENDRICKS_2018
from bias_pipeline.stats.bootstrap import Bootstrap

OVER = ("all", "named")
MOST_EXAMPLES = 12
NAMED, NAMED_HUMAN = PartName("named"), PartName("named", side="human")
NAMED_INCREASE = PartName("named", detail="increase")


class GenderError(CountingMetric):
    """Images whose caption names another group than the labelled one, over all labelled images.

    A caption that names no group or several is not wrong, so silence lowers the error: read the
    neutral rate beside it. Where next to no caption names a group there is no error. ``human`` is
    the same of people's captions, ``named`` the error over captions that name one group alone,
    which silence does not lower, ``named:human`` people's and ``named:increase`` their difference,
    ``group:NAME`` the error on a group's images. Any number of groups will do. The table
    ``misnamed`` has captions that name the wrong group, a dozen at most.

    Args:
        attribute: whose groups count.
        stats: how intervals are made.
        words: which word list names a group; see
            :class:`~bias_pipeline.metrics.counting.tally.CountingMetric`. Published cells were
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
        direction="lower is fairer; 0: nobody is called what they are not",
        family="counting",
        question="misgendering",
        sources={HENDRICKS_2018: "section 4", BAKR_2023: "Table 3"},
        responses={
            "score": Response(
                moves=("group follows object", "women called men"),
                stays=("object follows group",),
                absent=("neutral alone", "neutral instead of wrong"),
            )
        },
        says={
            "score": "of captions that name one {attribute}, those that name the wrong one",
        },
        readings={"score": Reading("named", named=True)},
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

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        sides = [side for side in SIDES if (seen.labelled & seen.has(side)).any()]
        about = {side: About(seen.labelled & seen.has(side), side, range=SHARE) for side in sides}
        n_groups = len(seen.groups)

        def numbers(sums: Sums) -> dict[PartName, FloatArray]:
            counts = {side: outcomes_of(sums[side], n_groups) for side in sides}
            rates = groups.rates(counts["model"])
            values = {
                SCORE: groups.error(counts["model"], self.over),
                NAMED: groups.error(counts["model"], "named"),
            }
            if "human" in counts:
                values[HUMAN] = groups.error(counts["human"], self.over)
                values[NAMED_HUMAN] = groups.error(counts["human"], "named")
                values[NAMED_INCREASE] = values[NAMED] - values[NAMED_HUMAN]
            return values | {PartName(group=g): rates[:, a, 1] for a, g in enumerate(seen.groups)}

        def observations(sums: Sums) -> dict[PartName, FloatArray]:
            counts = {side: outcomes_of(sums[side], n_groups) for side in sides}
            whole = {side: own.sum(axis=(-2, -1)) for side, own in counts.items()}
            named = {side: own[..., :-1].sum(axis=(-2, -1)) for side, own in counts.items()}
            over = whole if self.over == "all" else named
            found = {SCORE: over["model"], NAMED: named["model"]}
            if "human" in counts:
                found |= {HUMAN: over["human"], NAMED_HUMAN: named["human"]}
            of_groups = counts["model"].sum(axis=-1)
            return found | {PartName(group=g): of_groups[:, a] for a, g in enumerate(seen.groups)}

        return Tally(
            tables={side: outcome_table(seen, side) for side in sides},
            numbers=numbers,
            about=about["model"],
            parts={
                HUMAN: about[sides[-1]],
                NAMED_HUMAN: about[sides[-1]],
                NAMED_INCREASE: About(about["model"].images),
            },
            observations=observations,
            differences={NAMED_INCREASE: (NAMED, NAMED_HUMAN)},
        )

    def examples(self, seen: Seen) -> Mapping[str, Sequence[Mapping[str, object]]]:
        """See the class."""
        found = misnamed(seen)
        return {"misnamed": found} if found else {}


def misnamed(seen: Seen, most: int = MOST_EXAMPLES) -> list[dict[str, object]]:
    """Captions of the model that name another group than the labelled one.

    Args:
        seen: what captions say.
        most: how many; they are drawn by a hash of their images' ids, so any order of the input
            gives the same.
    """
    captions, named = seen.corpus.side("model"), seen.named("model")
    labelled = seen.codes[captions.image_rows]
    wrong = np.flatnonzero((labelled >= 0) & (named >= 0) & (named != labelled))
    chosen = wrong[np.argsort(seen.corpus.keys[captions.image_rows[wrong]], kind="stable")[:most]]
    return [
        {
            "image_id": seen.corpus.ids[captions.image_rows[i]],
            "labelled": seen.groups[labelled[i]],
            "named": seen.groups[named[i]],
            "caption": captions.text(i),
            "wrong": len(wrong),
        }
        for i in chosen.tolist()
    ]


def outcome_table(seen: Seen, side: str) -> sparse.csr_array:
    """(N, K * (K + 1)) which group each labelled image's captions name, none and several last."""
    n_groups = len(seen.groups)
    images, named = seen.images(side), seen.named(side)
    labelled = seen.labelled[images]
    column = np.where(named < 0, n_groups, named) + seen.codes[images] * (n_groups + 1)
    shape = (len(seen.corpus), n_groups * (n_groups + 1))
    return cells(images[labelled], column[labelled], shape)


def outcomes_of(sums: FloatArray, n_groups: int) -> FloatArray:
    """(B, K, K + 1) from sums of :func:`outcome_table`."""
    return sums.reshape(len(sums), n_groups, n_groups + 1)
