"""Assumed group: captions that name a group of people whose group annotators could not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import UNSURE, EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView, group_task_cells
from bias_pipeline.metrics.counting.base import SHARE, CountingMetric, CountSpec, Sums, ValueBasis
from bias_pipeline.metrics.functional.groups import (
    gender_ratio,
    named_shares,
    one_named,
    several_named,
)
from bias_pipeline.metrics.references import BAKR_2023, HENDRICKS_2018
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)

MOST_EXAMPLES = 12
BOTH, BOTH_HUMAN = PartName("both"), PartName("both", side="human")
RATIO, RATIO_HUMAN = PartName("ratio"), PartName("ratio", side="human")
RATIO_LABELLED = PartName("ratio", detail="labelled")


@dataclass(eq=False, kw_only=True)
class AssumedGroup(CountingMetric):
    """How often captions name a group that annotators could not see, minus people's share.

    The attribute lists the labels of such images (``LabelMap.unsure``): "Both", an empty label
    and "no majority" are not among them. A caption names one group as in ``gender_error``
    (Hendricks et al. 2018); one that names several is counted separately. ``model`` is the share of
    the captioner's captions of such images that name one group and ``human`` people's, each on all
    such images that the side describes; ``score`` is the difference on the images that both
    describe (``model:paired``, ``human:paired``). Every image counts once, however many captions
    people wrote of it.

    ``group:NAME`` is the share that names NAME, ``both`` that of captions that name several groups,
    ``both:human`` people's. With two groups ``ratio`` is how many of these captions name the first
    for each that names the second, ``ratio:human`` people's, and ``ratio:labelled`` the captioner's
    on images with a labelled group. A captioner that never names a group scores 0, so read the
    neutral rate too. The table ``assumed`` has at most a dozen captions that name a group.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="assumed_group",
        title="Assumed group",
        version=1,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 it names a group that nobody can see more often than "
        "people do",
        family="counting",
        question="assuming",
        sources={HENDRICKS_2018: "section 4", BAKR_2023: "section 5.5.1"},
        ours="labelled photographs and people's share are",
        images=UNSURE,
        without={"human captions": MODEL},
        responses={
            "score": ExpectedResponse(
                moves=("group assumed",),
                stays=("object follows group", "women called men"),
            )
        },
        says={
            "score": "where annotators could not tell the {attribute}, it names one more often "
            "than people do",
        },
        readings={"score": EvidenceRule("model")},
    )

    words: str | None = "hendricks"  # which word list names a group; see `CountingMetric`

    def check(self, view: CorpusView) -> None:
        """See the class.

        Raises:
            NotApplicableError: if the captioner describes no such image.
        """
        if not (view.unsure & view.has("model")).any():
            raise NotApplicableError(
                f"dataset {view.corpus.dataset!r}: captioner {view.corpus.captioner!r} describes "
                "no image whose annotators could not tell the group of "
                f"{self.attribute.name!r}, and assumed_group needs such images"
            )

    def rests_on_names(self, part: PartName) -> bool:
        """None: a captioner that never names a group assumes nothing."""
        del part
        return False

    def tally(self, view: CorpusView) -> CountSpec:
        """See the class."""
        model, human = (view.unsure & view.has(side) for side in ("model", "human"))
        paired, labelled = model & human, view.labelled & view.has("model")
        images = {
            MODEL: model,
            **({HUMAN: human} if human.any() else {}),
            **({MODEL_PAIRED: paired, HUMAN_PAIRED: paired} if paired.any() else {}),
        }
        tables = {str(name): outcome_shares(view, name.side, mask) for name, mask in images.items()}
        if labelled.any():
            tables[RATIO_LABELLED] = outcome_shares(view, "model", labelled)

        def numbers(sums: Sums) -> dict[PartName, Float64Array]:
            values = {name: one_named(sums[name]) for name in images}
            values[SCORE] = (
                values[MODEL_PAIRED] - values[HUMAN_PAIRED]
                if MODEL_PAIRED in values
                else np.full_like(values[MODEL], np.nan)
            )
            return values | _further(sums, view.groups)

        def observations(_: Sums) -> dict[PartName, Float64Array]:
            counts = {
                name: np.array([view.n_captions(name.side)[mask].sum()], np.float64)
                for name, mask in images.items()
            }
            named = [BOTH, *(PartName(group=name) for name in view.groups)]
            counts |= dict.fromkeys(named, counts[MODEL])
            return counts | ({BOTH_HUMAN: counts[HUMAN]} if HUMAN in counts else {})

        return CountSpec(
            tables=tables,
            numbers=numbers,
            about=ValueBasis(model, range=SHARE),
            parts={
                SCORE: ValueBasis(paired),
                **{name: ValueBasis(mask, name.side, range=SHARE) for name, mask in images.items()},
                BOTH_HUMAN: ValueBasis(human, "human", range=SHARE),
                RATIO: ValueBasis(model, unit="ratio"),
                RATIO_HUMAN: ValueBasis(human, "human", unit="ratio"),
                RATIO_LABELLED: ValueBasis(labelled, unit="ratio", among=view.labelled),
            },
            observations=observations,
            differences={SCORE: (MODEL_PAIRED, HUMAN_PAIRED)},
            notes=_notes(model, paired, human),
        )

    def caption_tables(self, view: CorpusView) -> Mapping[str, Sequence[Mapping[str, object]]]:
        """See the class."""
        lines = assumed(view)
        return {"assumed": lines} if lines else {}


def outcome_shares(view: CorpusView, side: str, images: BoolArray) -> sparse.csr_array:
    """(N, K + 2) share of each image's captions that name each group alone, none and several.

    Args:
        view: what captions say.
        side: whose captions.
        images: (N,) those that count; the rows of others are empty.
    """
    rows, outcomes = view.images(side), view.outcomes(side)
    chosen = images[rows]
    shape = (len(view.corpus), len(view.groups) + 2)
    counts = group_task_cells(rows[chosen], outcomes[chosen], shape)
    weights = sparse.diags_array(1 / np.maximum(view.n_captions(side), 1))
    return sparse.csr_array(weights @ counts)


def assumed(view: CorpusView) -> list[dict[str, object]]:
    """Captions of the model that name one group that annotators could not see; a few examples.

    They are drawn by a hash of their images' ids, so any order of the input gives the same.

    Args:
        view: what captions say.
    """
    captions, named = view.corpus.side("model"), view.named("model")
    assuming = np.flatnonzero(view.unsure[captions.image_rows] & (named >= 0))
    keys = view.corpus.keys[captions.image_rows[assuming]]
    return [
        {
            "image_id": view.corpus.ids[captions.image_rows[i]],
            "named": view.groups[named[i]],
            "caption": captions.text(i),
            "assuming": len(assuming),
        }
        for i in assuming[np.argsort(keys, kind="stable")[:MOST_EXAMPLES]].tolist()
    ]


def _further(sums: Sums, groups: Sequence[str]) -> dict[PartName, Float64Array]:
    """Shares that name each group and several groups, and the ratios of two groups."""
    by_group = named_shares(sums[MODEL])
    values = {PartName(group=name): by_group[:, k] for k, name in enumerate(groups)}
    values[BOTH] = several_named(sums[MODEL])
    if HUMAN in sums:
        values[BOTH_HUMAN] = several_named(sums[HUMAN])
    if len(groups) != 2:
        return values
    sides = {RATIO: MODEL, RATIO_HUMAN: HUMAN, RATIO_LABELLED: RATIO_LABELLED}
    return values | {
        name: gender_ratio(sums[side][..., :2]) for name, side in sides.items() if side in sums
    }


def _notes(model: BoolArray, paired: BoolArray, human: BoolArray) -> list[str]:
    """Notes for the reader about the images."""
    if not human.any():
        return ["no human captions: there is model, but no score"]
    lacking = int((model & ~paired).sum())
    if not lacking:
        return []
    return [
        f"{lacking} images of people of unknown group have a model caption and no human captions: "
        "they count in model, not in score"
    ]
