"""Assumed group measures how often captions name a group that nobody could see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Context, words_of
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import UNSURE, EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView, group_task_cells, sum_by_image
from bias_pipeline.metrics.counting.base import example_lines
from bias_pipeline.metrics.counting.gold import CorrectedByGold, Tables, caption_outcomes
from bias_pipeline.metrics.counting.numbers import (
    SHARE,
    CountedNumber,
    Numbers,
    Sums,
    Tally,
    counted_share,
)
from bias_pipeline.metrics.counting.sides import described_images
from bias_pipeline.metrics.counting.true_labels import CaptionOutcomes
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.groups import (
    gender_ratio,
    joined_names_one,
    named_shares,
    one_named,
    several_named,
)
from bias_pipeline.metrics.references import BAKR_2024, HENDRICKS_2018
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)
from bias_pipeline.text.mentions import NO_GROUP, lowered_words
from bias_pipeline.text.sentence_columns import Sentences, split_sentences

BOTH, BOTH_HUMAN = PartName("both"), PartName("both", side="human")
RATIO, RATIO_HUMAN = PartName("ratio"), PartName("ratio", side="human")
RATIO_LABELLED = PartName("ratio", detail="labelled")
_BOTH = {MODEL: BOTH, HUMAN: BOTH_HUMAN}
WHOLE = PartName("whole")
WHOLE_MODEL, WHOLE_HUMAN = PartName("whole", side="model"), PartName("whole", side="human")


@dataclass(eq=False, kw_only=True)
class AssumedGroup(CorrectedByGold):
    """How much more often than annotators the captioner names a group that nobody can see.

    Images count only if their group is labelled as unsure (``LabelMap.unsure``). In each caption
    only the first sentence that mentions a person counts, so that long and short captions can be
    compared. ``model`` and ``human`` are the shares of captions that name a group. ``score`` is
    their difference on the images that both describe.

    * ``whole``, ``whole:model``, ``whole:human``: the same numbers for whole captions, in which a
      later "he" counts. A caption with n sentences about persons is compared with n captions of
      annotators.
    * ``group:NAME``: the share of captions that name the group NAME. ``both``, ``both:human``: the
      share of captions that name several groups.
    * ``ratio``, ``ratio:human``, ``ratio:labelled``: the number of captions that name the first
      group, divided by the number that name the second.

    A captioner that never names a group scores 0 or less. So also read how often captions name no
    group.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="assumed_group",
        title="Assumed group",
        version=3,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, captions name groups that nobody can see more often "
        "than annotators do",
        family="counting",
        question="assuming",
        sources={HENDRICKS_2018: "section 4", BAKR_2024: "section 5.5.1"},
        ours="image labels and the comparison with annotators at equal length are",
        images=UNSURE,
        without={"human captions": MODEL},
        streams=True,
        responses={
            "score": ExpectedResponse(
                moves=("group assumed",),
                stays=("object follows group", "women called men"),
            )
        },
        says={
            "score": "where annotators could not tell the {attribute}, it names one more often "
            "than annotators do",
        },
        readings={"score": EvidenceRule("model", also=(WHOLE_MODEL,))},
    )

    words: str | None = "hendricks"  # which word list names a group; see `CountingMetric`
    persons: Context  # words for persons
    # What counts: the first sentence of a caption that mentions a person, or the whole caption
    # (longer captions then name a group more often, and there is no `whole`)
    sentence: Literal["first", "any"] = "first"

    def check(self, view: CorpusView) -> None:
        if not (view.unsure & view.has("model")).any():
            raise NotApplicableError(
                f"annotators could tell {self.attribute.name} in all described images; "
                "assumed_group needs some in which they could not"
            )

    def rests_on_names(self, part: PartName) -> bool:
        """False for every number. A captioner that never names a group assumes no group."""
        del part
        return False

    def tally(self, view: CorpusView) -> Tally:
        images, labelled = described_images(view, view.unsure), view.labelled & view.has("model")
        model, nowhere = images[MODEL], np.zeros(len(view.corpus), bool)
        human, paired = (images.get(part, nowhere) for part in (HUMAN, HUMAN_PAIRED))
        named = {side: self.named_group(view, side) for side in ("model", "human")}
        tables = {
            str(name): outcome_shares(view, name.side, named[name.side], mask)
            for name, mask in images.items()
        }
        if labelled.any():
            tables[RATIO_LABELLED] = outcome_shares(view, "model", named["model"], labelled)
        if paired.any() and self.sentence == "first":
            tables[WHOLE] = self._whole_table(view, paired)

        n_captions = {
            name: np.array([view.n_captions(name.side)[mask].sum()], np.float64)
            for name, mask in images.items()
        }
        ratios = {RATIO: (MODEL, model), RATIO_HUMAN: (HUMAN, human)}
        ratios[RATIO_LABELLED] = (RATIO_LABELLED, labelled)

        def numbers(sums: Sums) -> Numbers:
            def of_captions(part: PartName, values: Float64Array) -> CountedNumber:
                return CountedNumber(
                    values=values,
                    images=images[part],
                    side=part.side,
                    range=SHARE,
                    observations=n_captions[part],
                )

            def whole_share(column: int, of: PartName) -> CountedNumber:
                return of_captions(of, share(sums[WHOLE][..., column], sums[WHOLE][..., 2]))

            values = {part: of_captions(part, one_named(sums[part])) for part in images}
            values[SCORE] = (
                values[MODEL_PAIRED] - values[HUMAN_PAIRED]
                if MODEL_PAIRED in values
                else CountedNumber(values=np.nan * values[MODEL].values, images=paired)
            )
            by_group = named_shares(sums[MODEL])
            for k, group in enumerate(view.groups):
                values[PartName(group=group)] = of_captions(MODEL, by_group[:, k])
            for part, name in _BOTH.items():
                if part in images:
                    values[name] = of_captions(part, several_named(sums[part]))
            if WHOLE in sums:
                values[WHOLE_MODEL] = whole_share(0, MODEL_PAIRED)
                values[WHOLE_HUMAN] = whole_share(1, HUMAN_PAIRED)
                values[WHOLE] = values[WHOLE_MODEL] - values[WHOLE_HUMAN]
            for name, (table, of) in ratios.items():
                if len(view.groups) == 2 and table in sums:
                    values[name] = CountedNumber(
                        values=gender_ratio(sums[table][..., :2]),
                        images=of,
                        side=name.side or "model",
                        unit="ratio",
                        among=view.labelled if name == RATIO_LABELLED else None,
                    )
            return values

        assuming = np.flatnonzero(view.unsure[view.images("model")] & (named["model"] >= 0))
        examples = example_lines(view, assuming, {"named": named["model"]}, "assuming")
        lines = {"assumed": examples} if examples else {}
        return Tally(tables, numbers, notes=_notes(model, paired, human), lines=lines)

    def outcomes(self, view: CorpusView, side: str) -> CaptionOutcomes:
        """The groups that captions name, with weights under which every image counts once."""
        captions = caption_outcomes(view, side, self.named_group(view, side))
        each = np.maximum(view.n_captions(side), 1)[captions.rows]
        return replace(captions, weights=1 / each)

    def by_true_label(self, tables: Tables, view: CorpusView) -> Numbers:
        """The numbers by true label. ``whole`` is missing, since it needs more than outcomes."""
        n_groups = len(view.groups)
        unsure = {part: table[:, n_groups, : n_groups + 2] for part, table in tables.items()}
        numbers: dict[PartName, CountedNumber] = {}
        for part, outcomes in unsure.items():
            images, whole = view.unsure & view.has(part.side), outcomes.sum(axis=-1)
            alone = outcomes[:, :n_groups]
            numbers[part] = counted_share(alone.sum(axis=-1), whole, images, part.side)
            if part == MODEL:
                each = counted_share(alone, np.repeat(whole[:, None], n_groups, axis=1), images)
                numbers |= each.by_group(view.groups)
            if part in _BOTH:
                several = counted_share(outcomes[:, -1], whole, images, part.side)
                numbers[_BOTH[part]] = several
        if MODEL_PAIRED in numbers:
            numbers[SCORE] = numbers[MODEL_PAIRED] - numbers[HUMAN_PAIRED]
        return numbers

    def named_group(self, view: CorpusView, side: str) -> IntArray:
        """(C,): the only group named in the counted part of each caption; below 0 for none."""
        if self.sentence == "any":
            return view.named_group(side)
        blocks = view.corpus.side(side).blocks()
        named = [np.empty(0, np.int64), *(self._named_first(view, block) for block in blocks)]
        return np.concatenate(named)

    def _named_first(self, view: CorpusView, captions: Captions) -> IntArray:
        """(C,): the only group in each caption's first sentence about a person."""
        sentences, mentions = self._sentences(view, captions)
        first = sentences.about_person & (sentences.person_number == 1)
        named = np.full(len(captions), NO_GROUP)
        named[sentences.words.image_rows[first]] = view.named_alone(mentions[first])
        return named

    def _sentences(
        self, view: CorpusView, captions: Captions
    ) -> tuple[Sentences, sparse.csr_array]:
        """The S sentences of the captions, and the groups that the sentences name, (S, E)."""
        words = split_sentences(captions)
        mentions = view.every_group_named(words)
        persons = lowered_words(words).mentions(words_of(self.persons.words))
        return Sentences(words, persons | (np.diff(mentions.indptr) > 0)), mentions

    def _whole_table(self, view: CorpusView, images: BoolArray) -> sparse.csr_array:
        """(N, 3): each image's values for ``whole:model``, ``whole:human`` and their divisor."""
        blocks = view.corpus.side("model").blocks()
        parts = [self._one_and_sentences(view, block) for block in blocks]
        one, n_about = map(np.concatenate, zip(*parts, strict=True))
        image, annotators = view.images("model"), view.n_captions("human")
        chosen = images[image]
        one, n_about, image = one[chosen], n_about[chosen], image[chosen]
        drawn = np.clip(n_about, 1, np.maximum(annotators[image], 1))
        counts = outcome_counts(view, "human", view.named_group("human"), images)[image]
        outcomes = counts.toarray().astype(np.int64)
        chance = joined_names_one(outcomes[:, -2], outcomes[:, :-2], annotators[image], drawn)

        weight = 1 / np.maximum(view.n_captions("model"), 1)[image]
        columns = np.stack([one * weight, chance * weight, weight], axis=1)
        return sum_by_image(sparse.csr_array(columns), image, len(view.corpus))

    def _one_and_sentences(
        self, view: CorpusView, captions: Captions
    ) -> tuple[BoolArray, IntArray]:
        """Flags (C,): true where first sentences name one group.

        Also (C,) numbers of sentences on persons.

        If an image has m annotators, the first m sentences on persons are used.
        """
        sentences, mentions = self._sentences(view, captions)
        caption, n = sentences.words.image_rows, len(captions)
        within = sentences.person_number <= view.n_captions("human")[captions.image_rows[caption]]
        gather = group_task_cells(caption, np.arange(len(caption)), (n, len(caption)))
        joined = sparse.csr_array(gather[:, within] @ mentions[within])
        about = np.bincount(caption, sentences.about_person, n).astype(np.int64)
        return view.named_alone(joined) >= 0, about


def outcome_counts(
    view: CorpusView, side: str, named: IntArray, images: BoolArray
) -> sparse.csr_array:
    """(N, K + 2): how many captions of an image name each group alone, none, and several.

    ``named`` (C,) is the only group that each caption names, below 0 for no group or several.
    """
    captions = caption_outcomes(view, side, named)
    chosen = images[captions.rows]
    shape = (len(view.corpus), len(view.groups) + 2)
    return group_task_cells(captions.rows[chosen], captions.outcomes[chosen], shape)


def outcome_shares(
    view: CorpusView, side: str, named: IntArray, images: BoolArray
) -> sparse.csr_array:
    """(N, K + 2): shares of each image's captions. For the arguments see :func:`outcome_counts`."""
    weights = sparse.diags_array(1 / np.maximum(view.n_captions(side), 1))
    return sparse.csr_array(weights @ outcome_counts(view, side, named, images))


def _notes(model: BoolArray, paired: BoolArray, human: BoolArray) -> list[str]:
    """Notes on images that have no human captions."""
    if not human.any():
        return ["no human captions: there is a number of the model, but no score"]
    lacking = int((model & ~paired).sum())
    if not lacking:
        return []
    return [
        f"{lacking} images of people whose group is unknown have a model caption and no human "
        "captions: they count in the part model, not in the score"
    ]
