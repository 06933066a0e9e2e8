"""Group accuracy: is one group named rightly more often than another?"""

from __future__ import annotations

from typing import ClassVar

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.base import MetricInfo, Response
from bias_pipeline.metrics.counting.gender_error import outcome_table, outcomes_of
from bias_pipeline.metrics.counting.tally import (
    SHARE,
    About,
    CountingMetric,
    FloatArray,
    Sums,
    Tally,
)
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.parts import HUMAN, SCORE, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.metrics.sources import HENDRICKS_2018
from bias_pipeline.stats.bootstrap import Bootstrap

_OUTCOMES = ("", "incorrect", "other")  # named rightly is what a group is known by
DIVERGENCE = PartName("divergence")


class GroupAccuracy(CountingMetric):
    """Largest less smallest share of a group's images whose caption names that group.

    ``group:NAME`` is the share named rightly, ``incorrect:NAME`` wrongly; ``other:NAME`` are those
    whose caption names no group or several; the three sum to 1. ``divergence`` is the
    Jensen-Shannon divergence of the groups' triples in bits, ``human`` the score of people's
    captions. Any number of groups will do.

    Args:
        attribute: whose groups count.
        stats: how intervals are made.
        words: see :class:`~bias_pipeline.metrics.counting.tally.CountingMetric`; Hendricks et al.
            count with their list.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="group_accuracy",
        title="Gap in group accuracy",
        version=2,
        unit="fraction",
        range=(0.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; 0: all groups are named rightly equally often",
        family="counting",
        question="misgendering",
        sources={HENDRICKS_2018: "section 4 (outcome divergence)"},
        ours="the gap is",
        responses={
            "score": Response(
                moves=("women called men",),
                stays=("object follows group",),
                absent=("neutral alone", "neutral instead of wrong"),
            )
        },
        says={
            "score": "groups lie apart in how often they are named rightly",
        },
    )

    def __init__(
        self, attribute: Attribute, stats: Bootstrap, words: str | None = "hendricks"
    ) -> None:
        super().__init__(attribute, stats, words)

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        sides = [side for side in SIDES if (seen.labelled & seen.has(side)).any()]
        about = {side: About(seen.labelled & seen.has(side), side, range=SHARE) for side in sides}

        def numbers(sums: Sums) -> dict[PartName, FloatArray]:
            rates = {s: groups.rates(outcomes_of(sums[s], len(seen.groups))) for s in sides}
            own = rates["model"]
            values = {SCORE: _gap(own), DIVERGENCE: groups.divergence(own)}
            if "human" in rates:
                values[HUMAN] = _gap(rates["human"])
            return values | {
                PartName(outcome, group=name): own[:, a, c]
                for c, outcome in enumerate(_OUTCOMES)
                for a, name in enumerate(seen.groups)
            }

        bits = About(about["model"].images, unit="bits", range=SHARE)
        return Tally(
            tables={side: outcome_table(seen, side) for side in sides},
            numbers=numbers,
            about=about["model"],
            parts={DIVERGENCE: bits, HUMAN: about[sides[-1]]},
        )


def _gap(rates: FloatArray) -> FloatArray:
    correct = rates[..., 0]
    gap: FloatArray = correct.max(axis=-1) - correct.min(axis=-1)
    return gap
