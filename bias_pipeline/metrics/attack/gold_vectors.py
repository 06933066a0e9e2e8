"""Corrects DPA by gold labels, in one step from the numbers by machine labels.

Attackers of A→T read the label. So their guesses for another label are taken from images that have
this label. Attackers of T→A guess labels that have as many random errors as captions. Gold labels
give the expected score of a guess under the true label, and the number of errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.attack.dpa_direction import PredictionTask, VectorAttackers
from bias_pipeline.metrics.gold import GoldSample
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

_STEP = 1e-4  # images
_COUNTED = ("accuracy", *SIDES)  # means that rest on no attacker

# By name of a mean, what each image adds: scores of guesses `guess:model` and `guess:human`, the
# latter of labels without random errors; `errors`, how much an error changes it, all (n, S, C) for
# S seeds and C tasks; and (n, 1) counts. NaN: the image belongs to no group and leaves all means.
Moments = Mapping[str, Float64Array]


@dataclass(frozen=True, eq=False)
class VectorsUnderBothLabels:
    """A direction's numbers under machine labels and under true labels of gold images."""

    attackers: VectorAttackers  # under machine labels of I images
    sample: GoldSample  # n gold images among them

    def changes(self) -> dict[PartName, Float64Array]:
        """(n, S): for each gold image, the change of numbers if all images changed like it."""
        differ, people, machine = self.sample.differ, self._people, self._machine
        weights, every = self.sample.weights[None], np.ones((1, len(self._question.images)))
        means = {
            "guess:model": self.attackers.means("model", every),
            "errors": _means(machine["errors"], weights),
            **{name: self.attackers.count(name, every) for name in _COUNTED},
        }
        errors = (1 - means["accuracy"])[..., None] * means["errors"]
        means["guess:human"] = self.attackers.means("human", every) - errors
        steps = {}
        for name, of in machine.items():
            left = np.isnan(people[name][differ])
            steps[name] = np.where(left, _means(of, weights), people[name][differ]) - of[differ]
        more, less = (
            self._numbers({name: means[name] + sign * _STEP * steps[name] for name in means})
            for sign in (1, -1)
        )
        changes = {}
        for name, value in more.items():
            changes[name] = np.zeros((len(self.sample.rows), value.shape[1]))
            changes[name][differ] = (value - less[name]) / (2 * _STEP)
        return changes

    def estimates_of_gold(self, stats: Bootstrap) -> dict[PartName, Estimate]:
        """The numbers computed from the gold images alone."""

        def evaluate(counts: Float64Array) -> dict[PartName, Float64Array]:
            weights = counts * self.sample.weights
            return self._numbers({name: _means(of, weights) for name, of in self._people.items()})

        return stats.estimate_weighted(
            self.sample.keys, evaluate, trained=self.attackers.is_trained, cross_fitted=True
        )

    def _numbers(self, means: Moments) -> dict[PartName, Float64Array]:
        human = means["guess:human"] + (1 - means["accuracy"])[..., None] * means["errors"]
        return self.attackers.numbers(means["guess:model"], human, means)

    @property
    def _question(self) -> PredictionTask:
        return self.attackers.question

    @cached_property
    def _machine(self) -> Moments:
        return self._moments(self.sample.machine)

    @cached_property
    def _people(self) -> Moments:
        return self._moments(self.sample.truth)

    def _moments(self, labels: IntArray) -> Moments:
        """The moments of the gold images if (n,) ``labels`` are their labels."""
        place = np.searchsorted(self._question.images, self.sample.rows)
        counts = {name: self.attackers.of_images[name][place] for name in _COUNTED}
        if self._question.has_several:
            moments = self._scores_of_tasks(labels)
        else:
            number = {name: code for code, name in enumerate(self._question.classes)}
            classes = np.array([number.get(name, -1) for name in self.sample.groups])
            labels = np.where(labels >= 0, classes[labels], -1)
            moments = self._scores_of_groups(labels)
            counts["accuracy"] = self._question.predicted[place] == labels
        moments |= {name: count.astype(np.float64)[:, None] for name, count in counts.items()}
        outside = (labels < 0) | np.isnan(moments["guess:human"]).any(axis=(1, 2))
        for of in moments.values():
            of[outside] = np.nan
        return moments

    def _scores_of_tasks(self, labels: IntArray) -> dict[str, Float64Array]:
        """For images with each label, the scores of the average guesses of a seed's attackers."""
        score = self.attackers.settings.scoring.per_guess
        moments = {}
        for side, predictions in self.attackers.predictions.items():
            of_seeds = []
            for (truth, _), (images, _, probs) in zip(
                self._guesses(side), predictions, strict=True
            ):
                means = np.full(truth.shape, np.nan)
                codes = self.attackers.view.codes[images]
                for code in np.intersect1d(labels, codes):
                    kinds, sizes = np.unique(probs[codes == code], axis=0, return_counts=True)
                    of_label = truth[labels == code]
                    each = [score(np.tile(kind, (len(of_label), 1)), of_label) for kind in kinds]
                    means[labels == code] = np.average(each, axis=0, weights=sizes)
                of_seeds.append(means)
            moments[f"guess:{side}"] = np.stack(of_seeds, axis=1)
        return {**moments, "errors": np.zeros_like(moments["guess:human"])}

    def _scores_of_groups(self, labels: IntArray) -> dict[str, Float64Array]:
        """Scores of guesses for (n,) groups, and their change if the label were another group."""
        settings, last = self.attackers.settings, len(self._question.classes) - 1
        score = settings.scoring.per_guess
        model = [score(probs, truth) for truth, probs in self._guesses("model")]
        right, errors = [], []
        for truth, probs in self._guesses("human"):
            each = [score(probs, np.full_like(truth, group)) for group in range(last + 1)]
            right.append(np.choose(labels, each, mode="clip"))
            errors.append((np.sum(each, axis=0) - right[-1]) / last - right[-1])
        moments = {"guess:model": model, "guess:human": right, "errors": errors}
        stacked = {name: np.stack(of, axis=1)[..., None] for name, of in moments.items()}
        stacked["errors"] *= settings.equalise != "none"
        return stacked

    def _guesses(self, side: str) -> list[tuple[IntArray, Float64Array]]:
        """For each seed, the true values for the gold images and the attackers' guesses."""
        stored = []
        for images, truth, probs in self.attackers.predictions[side]:
            order = np.argsort(images)
            rows = order[np.searchsorted(images, self.sample.rows, sorter=order)]
            stored.append((truth[rows], probs[rows]))
        return stored


def _means(of: Float64Array, weights: Float64Array) -> Float64Array:
    """(B, ...): the means of (n, ...) numbers under (B, n) weights; NaN values are left out."""
    flat = of.reshape(len(of), -1)
    known = np.isfinite(flat[:, 0])
    total = np.maximum(weights[:, known].sum(axis=1, keepdims=True), 1e-12)
    means: Float64Array = weights[:, known] @ flat[known] / total
    return means.reshape(len(weights), *of.shape[1:])
