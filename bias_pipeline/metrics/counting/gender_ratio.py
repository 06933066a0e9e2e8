"""Gender ratio: how many men captions name for one woman, against the labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import MetricInfo, Response
from bias_pipeline.metrics.counting.tally import (
    About,
    CountingMetric,
    FloatArray,
    Sums,
    Tally,
    choice,
    one_hot,
)
from bias_pipeline.metrics.functional.groups import ratio
from bias_pipeline.metrics.parts import HUMAN, MODEL, SCORE, PartName
from bias_pipeline.metrics.seen import Seen, cells
from bias_pipeline.metrics.sources import BAKR_2023, HENDRICKS_2018
from bias_pipeline.stats.bootstrap import Bootstrap

CAPTIONS = PartName("captions", side="human")
INCREASE = PartName("captions", detail="increase")


class GenderRatio(CountingMetric):
    """Captions that name the first of two groups for one that names the other.

    ``model`` counts the captioner's captions that name exactly one group, ``human`` the labels of
    the same images, and ``score`` is their difference, 0 where captions keep the proportions.
    ``captions:human`` is the ratio in people's captions, ``captions:increase`` the captioner's less
    that. People keep the labels' proportions no better, so the p of ``score`` is that of
    ``captions:increase`` being 0; without people's captions there is none.

    Args:
        attribute: has two groups.
        stats: how intervals are made.
        words: see :class:`~bias_pipeline.metrics.counting.tally.CountingMetric`; published cells
            were made with Hendricks'.
        numerator: the group that is divided by the other; the attribute's first if left out, which
            gives men by women as in published tables. Hendricks et al. have women by men.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_ratio",
        title="Gender ratio",
        version=3,
        unit="difference",
        range=(-np.inf, np.inf),
        neutral=0.0,
        direction="0 is fairest; above 0 captions name the first group too often",
        family="counting",
        question="mentions",
        sources={HENDRICKS_2018: "section 4", BAKR_2023: "Table 3"},
        responses={
            "score": Response(
                moves=("women called men",),
                stays=("object follows group",),
                absent=("neutral alone",),
            )
        },
        says={
            "score": "it names the first group more often than labels have it",
        },
        untested=("score",),
        amplification=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        stats: Bootstrap,
        words: str | None = "hendricks",
        numerator: str | None = None,
    ) -> None:
        super().__init__(attribute, stats, words)
        self.numerator = choice("numerator", numerator or attribute.groups[0], attribute.groups)

    def rests_on_names(self, part: PartName) -> bool:
        """All but the ratio of the labels."""
        return part != HUMAN

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        if len(seen.groups) != 2:
            raise NotApplicableError(
                f"metric=gender_ratio compares two groups; attribute {self.attribute.name!r} has "
                f"{len(seen.groups)}: choose group_accuracy or cooccurrence"
            )
        first = seen.groups.index(self.numerator)
        images = seen.labelled & seen.has("model")
        people = seen.labelled & seen.has("human")

        tables = {
            MODEL: _named(seen, "model"),
            HUMAN: one_hot(np.where(images, seen.codes, -1), 2),
        }
        if people.any():
            tables[CAPTIONS] = _named(seen, "human")

        def numbers(sums: Sums) -> dict[PartName, FloatArray]:
            ratios = {name: ratio(sums[name], first) for name in tables}
            if CAPTIONS in ratios:
                ratios[INCREASE] = ratios[MODEL] - ratios[CAPTIONS]
            return {SCORE: ratios[MODEL] - ratios[HUMAN], **ratios}

        return Tally(
            tables={str(name): table for name, table in tables.items()},
            numbers=numbers,
            about=About(images, unit="ratio"),
            parts={
                SCORE: About(images, unit="difference"),
                CAPTIONS: About(people, "human", "ratio"),
                INCREASE: About(images & people, unit="difference"),
            },
            tested={SCORE: INCREASE} if people.any() else {},
        )


def _named(seen: Seen, side: str) -> sparse.csr_array:
    """(N, K) captions of labelled images that name one group."""
    images, named = seen.images(side), seen.named(side)
    kept = seen.labelled[images] & (named >= 0)
    return cells(images[kept], named[kept], (len(seen.corpus), len(seen.groups)))
