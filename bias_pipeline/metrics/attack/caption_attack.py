"""LIC and Leakage compare how well attackers guess from model captions and human captions.

LIC and Leakage differ only in how a guess is scored, which is a parameter.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.attack.probe import Probe
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES, Corpus, Side
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split, SplitRule
from bias_pipeline.declared import Count, Share
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.metrics.attack.attack_runner import (
    AttackRunner,
    AttackSettings,
    over_alternatives,
)
from bias_pipeline.metrics.attack.attacked_captions import (
    AnnotatorAttack,
    as_trained_before,
    attacked_captions,
    pairs_of,
)
from bias_pipeline.metrics.attack.attacked_pair import Pair, calibration
from bias_pipeline.metrics.attack.extra_parts import (
    NO_LESS_THAN_NONE,
    gap_of,
    gap_sentence,
    learning_note,
    learning_parts,
    smaller_shares,
    with_annotators,
)
from bias_pipeline.metrics.base import Metric, Number, Score
from bias_pipeline.metrics.corpus_view import has_captions
from bias_pipeline.metrics.functional import RELATIONS, accuracy_and_confidence_parts
from bias_pipeline.metrics.functional.attack import (
    Relation,
    RelationName,
)
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)
from bias_pipeline.stats.bootstrap import Bootstrap, Combination, Estimate, fill_void_resamples
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.scoring import Scoring
from bias_pipeline.text.mentions import neutral_rate
from bias_pipeline.text.transform import Transform, apply_transforms

GAP = PartName("gap")


@dataclass(eq=False)
class CaptionAttack(Metric, ABC):
    """Lets attackers guess the attribute from model and human captions with the same splits.

    Three sets of images are attacked separately. ``model`` has every labelled image with a model
    caption. ``human`` has every labelled image with human captions. ``score`` has every labelled
    image with both (``model:paired`` and ``human:paired``). New attackers are trained on the first
    human captions of all images, others on the second captions, and so on. The human side's score
    is the mean over these positions.
    """

    attribute: Attribute  # whose groups are guessed
    # Applied to the corpus in order; mask-then-align is not align-then-mask
    transforms: Sequence[Transform]
    probe: Probe  # trains the attackers
    split: SplitRule  # how splits are drawn
    scoring: Scoring  # how a guess is scored
    stats: Bootstrap  # how intervals are made
    # How the sides are compared: `difference`, `ratio` or `normalised`
    relation: RelationName = "difference"
    # How many human captions of an image are used; an image with fewer begins again with its first
    positions: Count = 5
    # Which sides are attacked; `[model]` gives LIC_M alone, without a score, at a sixth of the cost
    sides: Sequence[Side] = SIDES
    # If more than this share of captions contain no word once transformed, nothing is scored
    wordless_limit: Share = 0.5
    # Whether the first seed's attackers are also trained on half and on a quarter of their images:
    # `learning:half` and `learning:quarter`, beside `learning:all`. Attackers of both sides learn
    # more from more images, so a score that changes with their number means little without it
    learning_curve: bool = True

    def __post_init__(self) -> None:
        if not self.sides:
            raise UsageError(f"metric.sides=[]: name one or both of {', '.join(SIDES)}")
        self.split.check_trains()

    @property
    def comparison(self) -> Relation:
        return RELATIONS[self.relation]

    @property
    def headline_range(self) -> tuple[float, float]:
        """The range of the metric. Numbers that are not fractions have no bounds."""
        return self.info.range if self._unit == "fraction" else (-math.inf, math.inf)

    @property
    def _unit(self) -> str:
        return self.scoring.unit if self.relation == "difference" else self.comparison.unit

    def without_intervals(self) -> Self:
        """A copy of the metric that computes no intervals and no learning curve."""
        quick = super().without_intervals()
        quick.learning_curve = False
        return quick

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        return over_alternatives(
            self.transforms,
            self.stats.level,
            lambda transforms: self._score_under(transforms, corpus, splits),
        )

    def transform(self, transforms: Sequence[Transform], corpus: Corpus) -> Corpus:
        """The corpus in the form that attackers read."""
        return apply_transforms(transforms, corpus)

    def attackable(self, transformed: Corpus) -> BoolArray:
        """(N,) flags: true for images with all further inputs of attackers (here every image)."""
        return np.ones(len(transformed), bool)

    def with_inputs(self, data: LabelledCaptions, transformed: Corpus) -> LabelledCaptions:
        """The captions, with any further inputs of attackers. This class adds none."""
        del transformed
        return data

    def predictions(
        self, data: LabelledCaptions, sets: Sequence[Sequence[Split]]
    ) -> list[Predictions]:
        """Predictions of newly trained attackers for each set of splits."""
        return self.probe.fit_predict_each(data, sets)

    @property
    def attack_settings(self) -> AttackSettings:
        """The metric's settings and functions for :class:`AttackRunner`."""
        functions = self.with_inputs, self.predictions
        return AttackSettings(self.attribute.name, self.positions, self.wordless_limit, *functions)

    def extra_parts(self, attack: AttackRunner, images: BoolArray) -> Mapping[str, Number]:
        """Further numbers of the attacked images, which are (N,) flags. This class adds none."""
        del attack, images
        return {}

    @property
    def trains_alone(self) -> bool:
        """Whether no other metric can share this metric's attackers."""
        return type(self).extra_parts is not CaptionAttack.extra_parts

    def _score_under(
        self, transforms: Sequence[Transform], corpus: Corpus, splits: Sequence[Split]
    ) -> Score:
        """The score after transforms; if styles are made equal, with the scores of annotators."""
        attacked = attacked_captions(self, transforms, corpus, splits)
        score = self._score(corpus, attacked.captioner)
        if attacked.align is not None and SCORE in score.parts:
            people, alike = map(
                self._of_annotators, (attacked.one_person, attacked.annotators_alike)
            )
            matched = attacked.captioner.transformed
            score = with_annotators(score, matched, people, alike, self.stats.level)
        if attacked.metric is self:
            return score
        return replace(score, predictions=as_trained_before(score.predictions))

    def _of_annotators(self, attack: AnnotatorAttack | str) -> Score:
        """The headline if annotators replace the captioner, or a note why there is none."""
        if isinstance(attack, str):
            return Score({}, notes=[attack])
        part = self._headline(attack.pair, attack.corpus, attack.images)
        return Score({SCORE: part}, predictions=attack.predictions)

    def _score(self, corpus: Corpus, attack: AttackRunner) -> Score:
        """The score of a corpus, computed from attackers that read the transformed captions."""
        transformed = attack.transformed
        grouping = corpus.groupings[self.attribute.name]
        labelled = (grouping.codes >= 0) & self.attackable(transformed)
        has_model, has_human = (
            labelled & (side in self.sides) & has_captions(transformed, side) for side in SIDES
        )
        if not (has_model | has_human).any():
            raise DataError(
                f"no image of a group of {self.attribute.name!r} has a caption of "
                f"{' or '.join(self.sides)}"
            )
        both = has_model & has_human
        cross_fitted = self.probe.cross_fits(attack.splits)
        shares = smaller_shares(grouping.codes[both]) if self.learning_curve and both.any() else {}
        parts: dict[str, Number] = {}
        for name, images in ((MODEL, has_model), (HUMAN, has_human)):
            if images.any():
                shared = np.array_equal(images, both)
                predictions, *_ = attack.attack_images(
                    name, images, [*shares.values()] if shared else []
                )
                if not shared:
                    parts[name] = self._side(predictions, cross_fitted, corpus, name, images)
        curve: dict[str, Number] = {}
        groups = Score({})
        if both.any():
            pair, *fewer = pairs_of(attack, both, cross_fitted, [*shares.values()])
            compared = self._paired_parts(pair, corpus, both)
            same: dict[str, Number] = {
                MODEL: compared[MODEL_PAIRED],
                HUMAN: compared[HUMAN_PAIRED],
            }
            parts = {**same, **parts, **compared}
            if fewer:
                of_shares = zip(["all", *shares], [pair.of_first_seed(), *fewer], strict=True)
                curve = {name: self._headline(one, corpus, both) for name, one in of_shares}
            groups = self._groups(pair, corpus, both)
        parts |= learning_parts(curve)
        parts |= groups.parts
        parts |= self.extra_parts(attack, has_model | has_human)
        return Score(
            parts=parts,
            predictions=attack.trained,
            audit={
                "verbatim_share": attack.verbatim_share(),
                "wordless_share": attack.wordless_share,
                "chance": self.scoring.chance(len(grouping.names)),
                "groups": {**grouping.sizes, **grouping.strata},
            },
            notes=[
                *transformed.notes,
                *attack.notes,
                *attack.group_note(both if both.any() else has_model | has_human, self.scoring),
                *self.probe.encoder.notes(grouping.names),
                *self._note_missing(has_model, has_human),
                *[
                    f"no {side} caption contains a word of attribute {self.attribute.name!r}"
                    for side in SIDES
                    if side in parts and parts[side].neutral_rate == 1
                ],
                *(learning_note(curve, curve["all"].image_std) if curve else []),
                *groups.notes,
            ],
            tables=transformed.tables,
        )

    def _side(
        self,
        predictions: Sequence[Predictions],
        cross_fitted: bool,
        corpus: Corpus,
        name: PartName,
        images: BoolArray,
    ) -> Number:
        table = ScoreTable.from_predictions(predictions, self.scoring)
        combinations: Mapping[PartName, Combination] = {name: lambda scores: scores}
        estimate = self.stats.estimate(
            [table], combinations, corpus.keys, cross_fitted=cross_fitted
        )[name]
        return self._with_scoring_unit(
            self._part(estimate, corpus, name.side, images, table.images)
        )

    def _headline(self, pair: Pair, corpus: Corpus, both: BoolArray) -> Number:
        tables = [
            ScoreTable.from_predictions(side, self.scoring) for side in (pair.model, pair.human)
        ]
        estimate = self.stats.estimate(
            tables, {SCORE: self.comparison.of}, corpus.keys, cross_fitted=pair.cross_fitted
        )[SCORE]
        return self._with_headline_unit(
            self._part(estimate, corpus, "model", both, tables[0].images)
        )

    def _paired_parts(self, pair: Pair, corpus: Corpus, both: BoolArray) -> dict[str, Number]:
        """The scores of both sides, their comparison, and numbers that explain it."""
        tables = pair.tables(self.scoring)
        estimates = self.stats.estimate(
            tables, self.combinations(), corpus.keys, cross_fitted=pair.cross_fitted
        )
        for side, predictions in (("model", pair.model), ("human", pair.human)):
            estimates[PartName("ece", side=side)] = calibration(predictions)
        parts: dict[str, Number] = {
            name: self._part(estimate, corpus, name.side or "model", both, tables[0].images)
            for name, estimate in estimates.items()
        }
        for name in (MODEL_PAIRED, HUMAN_PAIRED):
            parts[name] = self._with_scoring_unit(parts[name])
        parts[SCORE] = self._with_headline_unit(parts[SCORE])
        return parts

    def _groups(self, pair: Pair, corpus: Corpus, both: BoolArray) -> Score:
        """The score of each group of an intersection, and the largest gap between two groups."""
        if not self.attribute.is_crossed:
            return Score({})
        grouping = corpus.groupings[self.attribute.name]
        images = {name: both & (grouping.codes == k) for k, name in enumerate(grouping.names)}
        sides = pair.tables(self.scoring)[:2]
        estimates = {}
        for name, mask in images.items():
            tables = [table.rows_at(np.flatnonzero(mask)) for table in sides]
            estimate = self.stats.estimate(
                tables, {name: self.comparison.of}, corpus.keys, cross_fitted=pair.cross_fitted
            )[name]
            estimates[name] = fill_void_resamples(estimate, self.stats.level)
        parts: dict[str, Number] = {
            PartName(group=name): self._part(one, corpus, "model", images[name], sides[0].images)
            for name, one in estimates.items()
        }
        gap = gap_of(estimates, self.stats.level)
        if gap is not None:
            two = images[gap.worst] | images[gap.best]
            parts[GAP] = self._part(gap.estimate, corpus, "model", two, sides[0].images)
        notes = [] if gap is None else [gap_sentence(self.info.name, estimates, gap, self._unit)]
        compared = {name: self._with_headline_unit(part) for name, part in parts.items()}
        if GAP in compared:
            compared[GAP] = replace(compared[GAP], range=NO_LESS_THAN_NONE)
        return Score(compared, notes=notes)

    def _with_scoring_unit(self, part: Number) -> Number:
        unit = self.scoring.unit
        return replace(part, unit=unit, range=(0.0, 1.0 if unit == "fraction" else math.inf))

    def _with_headline_unit(self, part: Number) -> Number:
        """The number, with the unit, range and no-bias value of the headline."""
        return replace(
            part, unit=self._unit, range=self.headline_range, neutral=self.comparison.neutral
        )

    def combinations(self) -> dict[PartName, Combination]:
        """Functions of the scores of :meth:`Pair.tables`, in the order of the tables."""

        def lic_part(which: int) -> Combination:
            return lambda m, h, m_right, h_right, m_lic, h_lic: accuracy_and_confidence_parts(
                (m_right, m_lic), (h_right, h_lic)
            )[which]

        return {
            SCORE: lambda m, h, *_: self.comparison.of(m, h),
            MODEL_PAIRED: lambda m, *_: m,
            HUMAN_PAIRED: lambda m, h, *_: h,
            PartName("lic_from", detail="accuracy"): lic_part(0),
            PartName("lic_from", detail="confidence"): lic_part(1),
        }

    def _note_missing(self, has_model: BoolArray, has_human: BoolArray) -> list[str]:
        if set(self.sides) < set(SIDES):
            return [f"only the {self.sides[0]} side was attacked: there is no score"]
        if not has_human.any():
            return ["no human captions: amplification cannot be measured"]
        lacking = int((has_model & ~has_human).sum())
        if lacking:
            return [
                f"{lacking} images with a model caption have no human captions to compare with: "
                "not scored"
            ]
        return []

    def _part(
        self,
        estimate: Estimate,
        corpus: Corpus,
        side: str,
        images: BoolArray,
        tested: IntArray,
    ) -> Number:
        """A number for the images whose groups attackers guessed (corpus rows ``tested``)."""
        grouping = corpus.groupings[self.attribute.name]
        return Number(
            **vars(estimate),
            unit="fraction",
            n_images=int(images[tested].sum()),
            coverage=float(images.sum() / (grouping.codes >= 0).sum()),
            neutral_rate=neutral_rate(corpus.side(side), self.attribute, images),
        )
