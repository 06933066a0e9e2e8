"""Gender ratio compares how many men per woman captions name with how many are labelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView, group_task_cells
from bias_pipeline.metrics.counting.base import CountingMetric, check_known, row_of
from bias_pipeline.metrics.counting.numbers import CountedNumber, Numbers, Sums, Tally
from bias_pipeline.metrics.counting.sides import keep_rows, one_hot
from bias_pipeline.metrics.functional.groups import gender_ratio
from bias_pipeline.metrics.references import BAKR_2024, HENDRICKS_2018
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)

CAPTIONS = PartName("captions", side="human")
INCREASE = PartName("captions", detail="increase")


@dataclass(eq=False, kw_only=True)
class GenderRatio(CountingMetric):
    """Number of captions that name the first group, divided by the number that name the second.

    ``model`` is this ratio among captions that name exactly one group, and ``human`` is the ratio
    of labels. ``score`` is ``model`` minus ``human``. ``captions:human`` is the ratio in human
    captions. ``captions:increase`` is the captioner's ratio minus the annotators' ratio on the
    images that both describe. Each image counts once. Human captions differ from the labels too, so
    the p value of ``score`` tests ``captions:increase``.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="gender_ratio",
        title="Gender ratio",
        version=3,
        unit="difference",
        range=(-np.inf, np.inf),
        neutral=0.0,
        direction="0 is fairest; above 0, captions name the first group too often; the p value "
        "compares captions with human captions, not with labels",
        family="counting",
        streams=True,
        question="mentions",
        sources={HENDRICKS_2018: "section 4", BAKR_2024: "Table 3"},
        responses={
            "score": ExpectedResponse(
                moves=("women called men",),
                stays=("object follows group",),
                absent=("names no group",),
            )
        },
        says={
            "score": "it names the first group more often than the labels contain it",
        },
        untested=("score",),
        amplification=True,
    )

    # See `CountingMetric`; published cells were made with Hendricks'
    words: str | None = "hendricks"
    # The group in the numerator (default: the first that is labelled, which gives men divided by
    # women, as in published tables). Hendricks et al. divide women by men
    numerator: str | None = None

    def __post_init__(self) -> None:
        if self.numerator is not None:
            check_known("numerator", self.numerator, self.attribute.groups)

    def rests_on_names(self, part: PartName) -> bool:
        """True for all numbers, but not for the ratio of labels."""
        return part != HUMAN

    def tally(self, view: CorpusView) -> Tally:
        if len(view.groups) != 2:
            raise NotApplicableError(
                f"attribute {self.attribute.name!r} has {len(view.groups)} groups, and "
                "gender_ratio compares two; choose group_accuracy or cooccurrence"
            )
        first = row_of(self.numerator, view)
        images = view.labelled & view.has("model")
        view.check_compared(view.codes[images])
        people = view.labelled & view.has("human")
        both = images & people
        compared = bool(both.any()) and not view.too_few_named("human")
        tables = {
            MODEL: _named_table(view, "model"),
            HUMAN: one_hot(np.where(images, view.codes, -1), 2),
        }
        if people.any():
            tables[CAPTIONS] = _named_table(view, "human")
        if compared:
            each = np.maximum(view.n_captions("human"), 1)[:, None]  # an image counts once
            tables[MODEL_PAIRED] = keep_rows(tables[MODEL], both)
            tables[HUMAN_PAIRED] = keep_rows(sparse.csr_array(tables[CAPTIONS] / each), both)

        def numbers(sums: Sums) -> Numbers:
            def ratio(table: str, of: BoolArray, side: str = "model") -> CountedNumber:
                values = gender_ratio(sums[table], first)
                return CountedNumber(values=values, images=of, side=side, unit="ratio")

            values = {MODEL: ratio(MODEL, images), HUMAN: ratio(HUMAN, images)}
            score = replace(values[MODEL] - values[HUMAN], unit="difference")
            if people.any():
                values[CAPTIONS] = ratio(CAPTIONS, people, "human")
            if compared:
                increase = ratio(MODEL_PAIRED, both) - ratio(HUMAN_PAIRED, both)
                values[INCREASE] = replace(increase, unit="difference")
                score = replace(score, tested=values[INCREASE])
            return {SCORE: score, **values}

        return Tally(
            {str(name): table for name, table in tables.items()},
            numbers,
            notes=_nobody(view, np.asarray(tables[MODEL].sum(axis=0)), 1 - first),
        )


def _nobody(view: CorpusView, named: Float64Array, divisor: int) -> list[str]:
    """A note if the ratio is undefined, since no caption names the group in the denominator."""
    if named[divisor]:
        return []
    return [f"no caption names {view.groups[divisor]} alone, so there is no ratio to it"]


def _named_table(view: CorpusView, side: str) -> sparse.csr_array:
    """(N, K): how many captions of each labelled image name each group alone."""
    images, named = view.images(side), view.named_group(side)
    counted = view.labelled[images] & (named >= 0)
    return group_task_cells(images[counted], named[counted], (len(view.corpus), len(view.groups)))
