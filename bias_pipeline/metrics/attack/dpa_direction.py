"""One direction of DPA: what attackers guess, and the numbers computed from their guesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack.probe import Probe
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split, seeds_in, with_fewer_images
from bias_pipeline.io.hashing import hash_ids, random_words
from bias_pipeline.metrics.attack.attack_runner import check_tested
from bias_pipeline.metrics.attack.extra_parts import (
    error_of_first_seed,
    learning_note,
    learning_parts,
    smaller_shares,
)
from bias_pipeline.metrics.attack.guess_sums import GuessSums
from bias_pipeline.metrics.base import Number, Score
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.functional.attack import normalised_difference
from bias_pipeline.metrics.functional.dpa import EQUALISE, Equalise
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, drop_void_interval
from bias_pipeline.stats.scoring import Scoring

_UNITS = {"quality": "quality", "mentions": "per image"}
_COUNTED = ("accuracy", "mentions")  # numbers without attackers


@dataclass(frozen=True, eq=False)
class DPASettings:
    """Arguments of the metric that both directions use."""

    probe: Probe
    scoring: Scoring
    stats: Bootstrap
    equalise: Equalise


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """What the attackers of one direction guess for M images."""

    name: str  # the direction
    inputs: Captions  # M label vectors written as words
    labels: IntArray  # (M,) true classes, or (M, T) 0/1 for several tasks
    predicted: IntArray  # classes by the model's captions, in the same shape
    classes: tuple[str, ...]  # names of the classes or tasks
    lacking: str = ""  # why the direction cannot be scored, empty if it can
    note: str = ""  # a sentence for readers, empty if there is none

    def part(self, what: str = "", **fields: str) -> PartName:
        return PartName(what, direction=self.name, **fields)

    @property
    def images(self) -> IntArray:
        """(M,): the corpus rows of the images."""
        return self.inputs.image_rows

    @property
    def has_several(self) -> bool:
        """Whether an image has several tasks as labels, (M, T), and not one class, (M,)."""
        return self.labels.ndim == 2


class VectorAttackers:
    """Attackers of one direction, which read label vectors, and numbers from their guesses."""

    def __init__(
        self,
        settings: DPASettings,
        question: PredictionTask,
        view: CorpusView,
        splits: Sequence[Split],
    ) -> None:
        self.settings, self.question, self.view = settings, question, view
        self.splits, self.seeds = splits, seeds_in(splits)

    @classmethod
    def from_predictions(
        cls,
        settings: DPASettings,
        question: PredictionTask,
        view: CorpusView,
        predictions: Mapping[str, Predictions],
    ) -> VectorAttackers:
        """Attackers that have already guessed. ``predictions`` has the guesses for each side."""
        attackers = cls(settings, question, view, ())
        attackers.seeds = predictions["model"].seeds
        attackers.predictions = dict(predictions)
        return attackers

    @cached_property
    def predictions(self) -> dict[str, Predictions]:
        """The attackers' predictions for each side. Attackers are trained at the first use."""
        train = self.settings.probe.fit_predict
        model = self._label_inputs("model", self.question.predicted), self.splits
        by_seed = [  # every seed has its own label noise
            (
                self._label_inputs("human", self._noisy(seed)),
                [split for split in self.splits if split.seed == seed],
            )
            for seed in self.seeds
        ]
        for data, splits in (model, *by_seed):
            check_tested(data, splits)
        return {
            "model": train(*model),
            "human": Predictions.of_all_seeds([train(data, splits) for data, splits in by_seed]),
        }

    def _label_inputs(self, side: str, labels: IntArray) -> LabelledCaptions:
        question = self.question
        name = f"{question.name}:{side}"
        return LabelledCaptions(
            name, question.inputs, labels, len(question.classes), question.classes
        )

    def _noisy(self, seed: int) -> IntArray:
        question = self.question
        equalise = EQUALISE[self.settings.equalise]
        images = self.view.corpus.keys[question.images]
        if not question.has_several:
            noise = random_words("noise", seed, images)
            return equalise(question.labels, question.predicted, len(question.classes), noise)
        columns = [
            equalise(labels, predicted, 2, random_words("noise", seed, images, task))
            for labels, predicted, task in zip(
                question.labels.T, question.predicted.T, hash_ids(question.classes), strict=True
            )
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def _guesses(self) -> dict[str, list[GuessSums]]:
        """For each side, the guesses of each seed's attackers."""
        place = np.full(len(self.view.corpus), -1)
        place[self.question.images] = np.arange(len(self.question.images))
        return {
            side: [
                GuessSums.from_guesses(
                    self.settings.scoring, place[images], truth, probs, place.max() + 1
                )
                for images, truth, probs in predictions
            ]
            for side, predictions in self.predictions.items()
        }

    @staticmethod
    def is_trained(name: PartName) -> bool:
        """Whether a number depends on trained attackers."""
        return name.what not in _COUNTED

    def means(self, side: str, weights: Float64Array) -> Float64Array:
        """(B, S, C): the mean score of each seed's attackers, for each of C tasks.

        If attackers guess one class, C is 1.
        """
        return np.stack([guesses.mean(weights) for guesses in self._guesses[side]], axis=1)

    def evaluate(self, weights: Float64Array) -> dict[PartName, Float64Array]:
        """All numbers of the direction under weights of images: (B, S), or (B, 1) for counts."""
        model, human = (self.means(side, weights) for side in ("model", "human"))
        counts = {what: self.count(what, weights) for what in self.of_images}
        return self.numbers(model, human, counts)

    def numbers(
        self, model: Float64Array, human: Float64Array, counts: Mapping[str, Float64Array]
    ) -> dict[PartName, Float64Array]:
        """(B, S): all numbers, from (B, S, C) mean scores of both sides and (B, 1) mean counts."""
        question, of = self.question, self.question.part
        model, human = map(self.settings.scoring.link, (model, human))
        values = {of(): normalised_difference(model.mean(axis=-1), human.mean(axis=-1))}
        values |= {
            of("quality", side="model"): model.mean(axis=-1),
            of("quality", side="human"): human.mean(axis=-1),
            of("accuracy"): counts["accuracy"],
        }
        if question.has_several:
            scores = normalised_difference(model, human)
            values |= {of(object=t): scores[..., k] for k, t in enumerate(question.classes)}
            for side in SIDES:
                values[of("mentions", side=side)] = len(question.classes) * counts[side]
        return values

    @cached_property
    def of_images(self) -> dict[str, Float64Array]:
        """Three (M,) shares of tasks: named exactly if labelled, named by the model, labelled."""
        labels, named = self.question.labels, self.question.predicted
        values = {"accuracy": labels == named, "model": named, "human": labels}
        return {what: each.reshape(len(each), -1).mean(axis=1) for what, each in values.items()}

    def count(self, what: str, weights: Float64Array) -> Float64Array:
        """(B, 1): the weighted mean over images and tasks."""
        mean: Float64Array = (weights @ self.of_images[what] / weights.sum(axis=1))[:, None]
        return mean

    def score(self) -> Score:
        keys, of = self.view.corpus.keys[self.question.images], self.question.part()
        estimates = self.settings.stats.estimate_weighted(
            keys,
            self.evaluate,
            trained=self.is_trained,
            cross_fitted=self.settings.probe.cross_fits(self.splits),
        )
        estimates |= {of: drop_void_interval(estimates[of])}
        parts: dict[str, Number] = {
            n: number_of(n, one, self.question, self.view) for n, one in estimates.items()
        }
        curve = self._learning_curve()
        return Score(
            parts={**parts, **learning_parts(curve, self.question.name)},
            predictions=list(self.predictions.values()),
            audit={f"{self.question.name}:classes": list(self.question.classes)},
            notes=[
                *([self._caution(estimates)] if self.question.has_several else []),
                *filter(None, [self.question.note]),
                *learning_note(curve, error_of_first_seed(estimates[of]), self.question.name),
            ],
        )

    def _learning_curve(self) -> dict[str, Number]:
        """For each share of the images, the score of the first seed's attackers trained on it."""
        images = self.question.images
        shares = smaller_shares(self.view.codes[images]) if self.settings.probe.quick else {}
        if not shares:
            return {}
        once, headline = np.ones((1, len(images))), self.question.part()
        values = {"all": self.evaluate(once)[headline][0, 0].item()}
        for name, share in shares.items():
            fewer = with_fewer_images(self.splits, share)
            one = VectorAttackers(self.settings, self.question, self.view, fewer)
            values[name] = one.evaluate(once)[headline].item()
        return {
            name: number_of(headline, Estimate(value, n_seeds=1), self.question, self.view)
            for name, value in values.items()
        }

    def _caution(self, estimates: dict[PartName, Estimate]) -> str:
        of = self.question.part
        model, human = (estimates[of("mentions", side=side)].value for side in SIDES)
        return (
            f"A→T: captions name {model:.2f} tasks an image, labels contain {human:.2f}; rare "
            "tasks are easy to guess, so shorter captions score higher"
        )


def number_of(
    name: PartName, estimate: Estimate, question: PredictionTask, view: CorpusView
) -> Number:
    images = np.isin(np.arange(len(view.corpus)), question.images)
    return Number(
        **vars(estimate),
        unit=_UNITS.get(name.what, "fraction"),
        n_images=len(question.images),
        coverage=float(len(question.images) / view.labelled.sum()),
        neutral_rate=view.neutral_rate(name.side or "model", images),
    )
