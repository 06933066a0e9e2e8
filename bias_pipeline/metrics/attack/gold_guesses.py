"""Corrects LIC and Leakage by scoring guesses under both machine labels and gold labels.

Attackers learn from the machine labels of other images. So a guess for an image does not depend on
the image's own label, and can also be scored under the true label. The corrected score is a
weighted score (prediction-powered inference, PPI++). Gold images have weight 1 under their true
labels and weight -lambda under their machine labels. All other images have weight lambda.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.io.hashing import UIntArray
from bias_pipeline.metrics.attack.attacked_pair import Pair
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.base import Score
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.gold import check_drawn_at_random
from bias_pipeline.metrics.functional.gold import machine_weight
from bias_pipeline.metrics.gold import (
    CorrectableByGold,
    Correction,
    GoldSample,
    add_training_once,
    attackers_note,
    check_cross_fitted,
    worth_of,
)
from bias_pipeline.metrics.value_names import (
    ALIKE,
    BEYOND,
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.stats.scores import ScoreTable

FEWEST_OF_A_GROUP = 30  # gold images; with fewer the normal interval does not hold
_STEP = 1e-4  # images
_PEOPLE = PartName("matched", detail="people")
_OF_CAPTIONS = ("reach", "retained")  # details of numbers that rest on no label

Values = Mapping[PartName, Float64Array]
Attackers = Mapping[str, Sequence[Predictions]]  # by side or author of the captions


class CorrectedGuesses(CaptionAttack, CorrectableByGold):
    """A metric that compares each guess of the group with one label."""

    def correct(self, score: Score, corpus: Corpus, gold: GoldLabels) -> Correction:
        """Score the guesses for gold images under both machine and gold labels."""
        check_drawn_at_random(CorpusView(corpus, self.attribute, None), gold)
        sets = [
            GuessesUnderBothLabels.from_attackers(self, attackers, score, corpus, gold)
            for attackers in _attackers_by_images(score)
        ]
        if not sets:
            raise NotApplicableError(
                f"gold labels correct {self.info.name} under one choice of text and alignment; "
                "score each choice by itself"
            )
        sample, sizes = sets[0].sample, sets[0].sizes
        notes = [
            *sample.label_notes(),
            attackers_note(self.attribute.name),
        ]
        if sizes.min() < FEWEST_OF_A_GROUP:
            few = sample.groups[int(sizes.argmin())]
            notes.append(
                f"gold labels of at least {FEWEST_OF_A_GROUP} images of each group correct "
                f"{self.info.name}; these have {sizes.min()} of {few}"
            )
        corrected: dict[PartName, Estimate] = {}
        alone: dict[PartName, Estimate] = {}
        for one in sets:
            corrected |= one.correct_score(score)
            alone |= one.estimates(score, 0.0, alone=True)
        return Correction(
            corrected=corrected,
            alone={name: replace(one, draws=None) for name, one in alone.items()},
            worth={
                name: worth_of(one, alone[name], drawn_evenly=sample.drawn_evenly)
                for name, one in corrected.items()
            },
            n_gold=len(sample.rows),
            without_labels=[
                name
                for name in score.parts
                if isinstance(name, PartName)
                and name.what == "matched"
                and name.detail in _OF_CAPTIONS
            ],
            notes=notes,
        )


@dataclass(frozen=True, eq=False)
class GuessesUnderBothLabels:
    """Guesses that are scored by the machine labels of all images and by n gold labels."""

    sample: GoldSample
    keys: UIntArray  # (I,) hashes of the images' ids
    place: IntArray  # (n,) the places of the gold images among the I
    values: Callable[[Float64Array], Values]  # takes (B, I + n) weights, returns (B, S) numbers
    stats: Bootstrap

    @classmethod
    def from_attackers(
        cls,
        metric: CaptionAttack,
        attackers: Attackers,
        score: Score,
        corpus: Corpus,
        gold: GoldLabels,
    ) -> GuessesUnderBothLabels:
        first = next(iter(attackers.values()))
        tested = np.unique(np.concatenate([images for one in first for images in one.images]))
        check_cross_fitted(score, metric.info.name)
        sample = GoldSample.from_rows(tested, corpus, gold)
        both = {
            name: [_under_both_labels(one, sample, len(corpus)) for one in predictions]
            for name, predictions in attackers.items()
        }
        columns = np.concatenate([tested, len(corpus) + np.arange(len(sample.rows))])
        return cls(
            sample,
            corpus.keys[tested],
            np.searchsorted(tested, sample.rows),
            _numbers_of(metric, both, columns, score),
            metric.stats,
        )

    @property
    def sizes(self) -> IntArray:
        """(K,): the number of gold images of each group."""
        of_group = self.sample.truth[self.sample.truth >= 0]
        return np.bincount(of_group, minlength=len(self.sample.groups))

    def correct_score(self, score: Score) -> dict[PartName, Estimate]:
        """The corrected numbers, without values if a group has too few gold images."""
        estimates = self.estimates(score, self.weight_of_machine(score))
        if self.sizes.min() >= FEWEST_OF_A_GROUP:
            return estimates
        return dict.fromkeys(estimates, Estimate(math.nan))

    def weight_of_machine(self, score: Score) -> float:
        """Lambda, the weight of machine labels, in [0, 1], that suits the headline best."""
        n, rest = len(self.sample.rows), len(self.keys) - len(self.sample.rows)
        if not self.sample.drawn_evenly:
            return 1.0
        true = self._influences(len(self.keys) + np.arange(n))
        machine = self._influences(self.place)
        name = SCORE if SCORE in true else next(iter(true))
        spread = score.parts[name].image_std ** 2 * len(self.keys)
        return machine_weight(true[name], machine[name], spread, n, rest)

    def _influences(self, places: IntArray) -> dict[PartName, Float64Array]:
        """(n,): the derivative of each number with respect to the weight of each gold image."""
        whole = np.zeros(len(self.keys) + len(self.sample.rows))
        whole[: len(self.keys)] = 1.0
        slopes: dict[PartName, list[Float64Array]] = {}
        for some in np.array_split(places, max(1, len(places) // 100)):
            weights = np.tile(whole, (len(some), 1))
            ends = []
            for step in (_STEP, -_STEP):
                moved = weights.copy()
                moved[np.arange(len(some)), some] += step
                ends.append(self.values(moved))
            for name in ends[0]:
                slope = (ends[0][name] - ends[1][name]).mean(axis=1) / (2 * _STEP)
                slopes.setdefault(name, []).append(slope * len(self.keys))
        return {name: np.concatenate(parts) for name, parts in slopes.items()}

    def estimates(
        self, score: Score, machine: float, *, alone: bool = False
    ) -> dict[PartName, Estimate]:
        """The numbers if machine labels have the weight ``machine``, or from gold images alone."""
        drawn = self.stats.estimate_weighted(
            self.keys,
            lambda counts: self.values(self._weights(counts, machine, alone=alone)),
            cross_fitted=True,
        )
        return {
            name: add_training_once(estimate, score.parts[name], self.stats.level)
            for name, estimate in drawn.items()
            if name in score.parts
        }

    def _weights(self, counts: Float64Array, machine: float, *, alone: bool) -> Float64Array:
        """(B, I + n): the image weights, computed from the images' (B, I) counts."""
        gold = counts[:, self.place] * self.sample.weights
        gold = gold / np.maximum(gold.sum(axis=1, keepdims=True), 1e-12)
        weights = np.zeros((len(counts), counts.shape[1] + gold.shape[1]))
        weights[:, counts.shape[1] :] = gold
        if alone or not machine:
            return weights
        rest = counts.copy()
        if self.sample.drawn_evenly:
            rest[:, self.place] = 0.0
        weights[:, : counts.shape[1]] = machine * rest / rest.sum(axis=1, keepdims=True)
        weights[:, self.place] -= machine * gold
        return weights


def _attackers_by_images(score: Score) -> list[Attackers]:
    """Attackers for images of both sides, and for each side that has additional images.

    If styles are made equal, attackers of annotators who replace the captioner are added.
    """

    def attackers_named(pattern: str) -> list[Predictions]:
        return [one for one in score.predictions if re.fullmatch(pattern, one.name)]

    sides = {MODEL: attackers_named("model"), HUMAN: attackers_named(r"human:\d+")}
    paired = {MODEL: attackers_named("model:paired"), HUMAN: attackers_named(r"human:paired:\d+")}
    compared: dict[str, list[Predictions]] = {}
    if SCORE in score.parts:
        compared = {str(side): paired[side] or sides[side] for side in sides}
        for whose, prefix in (("people", "people"), ("alike", r"alike:\d+")):
            compared[f"{whose}:model"] = attackers_named(rf"{prefix}:model(:paired)?")
            compared[f"{whose}:human"] = attackers_named(rf"{prefix}:human:.*")
    apart = [side for side in sides if sides[side] and (paired[side] or not compared)]
    known = {name: attackers for name, attackers in compared.items() if attackers}
    both = [known] if {"model", "human"} <= known.keys() else []
    return [*both, *({str(side): sides[side]} for side in apart)]


def _under_both_labels(predictions: Predictions, sample: GoldSample, n_images: int) -> Predictions:
    """The predictions, in which gold images with a group are repeated under their true label.

    The row of a repeated image is ``n_images`` plus the index of the image among the gold images.
    """
    place = np.full(n_images, -1)
    of_group = sample.truth >= 0
    place[sample.rows[of_group]] = np.flatnonzero(of_group)
    gold = [np.flatnonzero(place[images] >= 0) for images in predictions.images]
    blocks = list(zip(predictions.images, predictions.truth, predictions.probs, gold, strict=True))
    return replace(
        predictions,
        images=tuple(np.concatenate([i, n_images + place[i[g]]]) for i, _, _, g in blocks),
        truth=tuple(np.concatenate([t, sample.truth[place[i[g]]]]) for i, t, _, g in blocks),
        probs=tuple(np.concatenate([p, p[g]]) for _, _, p, g in blocks),
    )


def _numbers_of(
    metric: CaptionAttack,
    sides: Attackers,
    columns: IntArray,
    score: Score,
) -> Callable[[Float64Array], Values]:
    """A function that computes numbers from weights of columns (images under one label)."""

    def tables(of: str) -> list[ScoreTable]:
        names = [name for name in (f"{of}model", f"{of}human") if name in sides]
        return [
            ScoreTable.from_predictions(sides[name], metric.scoring).rows_at(columns)
            for name in names
        ]

    if len(sides) == 1:
        (side,), (of_side,) = sides, tables("")
        name = MODEL if side == MODEL else HUMAN
        return lambda weights: {name: of_side.per_seed(weights)}
    shared = {
        paired: plain
        for plain, paired in ((MODEL, MODEL_PAIRED), (HUMAN, HUMAN_PAIRED))
        if plain in score.parts and score.parts[plain].value == score.parts[paired].value
    }
    pair = Pair(sides["model"], sides["human"], cross_fitted=True)
    of_pair = pair.tables(metric.scoring)
    distinct = {id(table): table.rows_at(columns) for table in of_pair}
    others = {SCORE: tables("people:"), ALIKE: tables("alike:")}

    def values(weights: Float64Array) -> Values:
        by_table = {key: table.per_seed(weights) for key, table in distinct.items()}
        scores = [by_table[id(table)] for table in of_pair]
        numbers = {name: how(*scores) for name, how in metric.combinations().items()}
        numbers |= {plain: numbers[paired] for paired, plain in shared.items()}
        for name, two in ((_PEOPLE, others[SCORE]), (ALIKE, others[ALIKE])):
            if len(two) > 1:
                numbers[name] = metric.comparison.of(*(one.per_seed(weights) for one in two))
        if ALIKE in numbers:
            numbers[BEYOND] = numbers[SCORE] - numbers[ALIKE]
        return numbers

    return values
