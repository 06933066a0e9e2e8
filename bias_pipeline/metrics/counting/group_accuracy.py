"""Group accuracy: is one group named correctly more often than another?"""

from __future__ import annotations

from typing import ClassVar

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.base import ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import SHARE, CountingMetric, CountSpec, Sums, ValueBasis
from bias_pipeline.metrics.counting.gender_error import outcome_table, outcomes_of
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.references import HENDRICKS_2018
from bias_pipeline.metrics.value_names import HUMAN, SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap

_OUTCOMES = ("", "incorrect", "other")  # the correct share has the plain group name
DIVERGENCE = PartName("divergence")


class GroupAccuracy(CountingMetric):
    """Largest minus smallest share of a group's images whose caption names that group.

    ``group:NAME`` is the share named correctly, ``incorrect:NAME`` wrongly; ``other:NAME`` is that
    of captions that name no group or several; the three sum to 1. ``divergence`` is the
    Jensen-Shannon divergence of the groups' triples in bits, ``human`` the score of people's
    captions. Works for any number of groups.

    Args:
        attribute: whose groups count.
        stats: how intervals are made.
        words: see :class:`~bias_pipeline.metrics.counting.base.CountingMetric`; Hendricks et al.
            count with their list.
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

    def __init__(
        self, attribute: Attribute, stats: Bootstrap, words: str | None = "hendricks"
    ) -> None:
        super().__init__(attribute, stats, words)

    def tally(self, view: CorpusView) -> CountSpec:
        """See the class."""
        view.check_compared(view.codes[view.labelled & view.has("model")])
        sides = [side for side in SIDES if (view.labelled & view.has(side)).any()]
        about = {
            side: ValueBasis(view.labelled & view.has(side), side, range=SHARE) for side in sides
        }

        def numbers(sums: Sums) -> dict[PartName, Float64Array]:
            rates = {s: groups.rates(outcomes_of(sums[s], len(view.groups))) for s in sides}
            shares = rates["model"]
            values = {SCORE: _gap(shares), DIVERGENCE: groups.divergence(shares)}
            if "human" in rates:
                values[HUMAN] = _gap(rates["human"])
            return values | {
                PartName(outcome, group=name): shares[:, a, c]
                for c, outcome in enumerate(_OUTCOMES)
                for a, name in enumerate(view.groups)
            }

        bits = ValueBasis(about["model"].images, unit="bits", range=SHARE)
        return CountSpec(
            tables={side: outcome_table(view, side) for side in sides},
            numbers=numbers,
            about=about["model"],
            parts={DIVERGENCE: bits, HUMAN: about[sides[-1]]},
        )


def _gap(rates: Float64Array) -> Float64Array:
    correct = rates[..., 0]
    gap: Float64Array = correct.max(axis=-1) - correct.min(axis=-1)
    return gap
