"""Corrects DBAC by gold labels, in one step from the numbers by machine labels.

Attackers learn from the machine labels of other images, so a guess for an image can also be scored
under the true label. A pair of a group and a task may have only a handful of gold images, too few
to divide by. Therefore the number by machine labels is computed first. Then the change that the
true labels of gold images would cause is added, to first order. Which pairs count depends only on
machine labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.metrics.attack.dbac_direction import (
    UNTRAINED,
    DirectionAttackers,
    GuessBlock,
)
from bias_pipeline.metrics.gold import GoldSample
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

_STEP = 1e-4  # images
_AT_ONCE = 100  # images that are computed together


def guesses_of(
    direction: str, predictions: Sequence[Predictions], whose: str = ""
) -> dict[str, list[Predictions]]:
    """For each side, the predictions of the direction's attackers for each caption position."""
    return {
        side: [
            one for one in predictions if re.fullmatch(rf"{whose}{direction}:{side}:\d+", one.name)
        ]
        for side in SIDES
    }


@dataclass(frozen=True, eq=False)
class PairsUnderBothLabels:
    """The numbers of a direction under machine labels and under the true labels of gold images."""

    attackers: DirectionAttackers  # under machine labels of I images
    sample: GoldSample  # n gold images among them

    @property
    def _n_images(self) -> int:
        return len(self.attackers.direction.images)

    @cached_property
    def _of_group(self) -> IntArray:
        """(g,): the indices of gold images whose true label is a group."""
        return np.flatnonzero(self.sample.truth >= 0)

    @cached_property
    def _machine(self) -> IntArray:
        """(n,): the indices of the gold images among all images."""
        return np.searchsorted(self.attackers.direction.images, self.sample.rows)

    @cached_property
    def _attackers_of_both(self) -> DirectionAttackers:
        """The attackers of I + g images. The last g are gold images under their true labels."""
        one = self.attackers.direction
        true_groups = np.eye(len(one.view.groups))[self.sample.truth[self._of_group]]
        direction = one.repeat(self._machine[self._of_group], true_groups, self._defined_pairs())
        blocks = {
            side: [*map(self._append, of_machine, self._true_attackers.blocks[side])]
            for side, of_machine in self.attackers.blocks.items()
        }
        return DirectionAttackers.from_blocks(direction, blocks, self.attackers.n_seeds)

    def _defined_pairs(self) -> np.ndarray:
        """(G, O) flags: true for pairs that have a score under machine labels."""
        one = self.attackers.direction
        numbers = self.attackers.evaluate(np.ones((1, self._n_images)))
        defined = np.zeros_like(one.supported_pairs)
        for g, o in zip(*np.nonzero(one.supported_pairs), strict=True):
            defined[g, o] = np.isfinite(numbers[one.pair(g, o)]).all()
        return defined

    @cached_property
    def _true_attackers(self) -> DirectionAttackers:
        """The guesses for gold images with a group, scored under the true labels."""
        one = self.attackers.direction
        place = np.full(len(one.corpus), -1)
        place[self.sample.rows[self._of_group]] = self._of_group

        def under_true_labels(guesses: Predictions) -> Predictions:
            gold = [np.flatnonzero(place[images] >= 0) for images in guesses.images]
            images = [each[some] for each, some in zip(guesses.images, gold, strict=True)]
            truth = (  # attackers of T→A guess objects, which no label of a group changes
                [self.sample.truth[place[each]] for each in images]
                if one.to_task
                else [each[some] for each, some in zip(guesses.truth, gold, strict=True)]
            )
            probs = [each[some] for each, some in zip(guesses.probs, gold, strict=True)]
            return replace(guesses, images=tuple(images), truth=tuple(truth), probs=tuple(probs))

        predictions = self.attackers.predictions.items()
        return DirectionAttackers.from_predictions(
            one, {side: [*map(under_true_labels, each)] for side, each in predictions}
        )

    def _append(self, block: GuessBlock, true: GuessBlock) -> GuessBlock:
        place = np.searchsorted(self._machine[self._of_group], true.rows)
        scores: Float64Array | sparse.csr_array
        if isinstance(block.scores, np.ndarray) and isinstance(true.scores, np.ndarray):
            scores = np.hstack([block.scores, true.scores])
        else:
            two = sparse.csr_array(block.scores), sparse.csr_array(true.scores)
            scores = sparse.hstack(two, format="csr")
        return GuessBlock(
            block.seed,
            np.concatenate([block.rows, self._n_images + place]),
            scores,
            sparse.hstack([block.counts, true.counts], format="csr"),
        )

    def changes(self) -> dict[PartName, Float64Array]:
        """(n, S): for each gold image, the change of numbers if all images changed like it."""
        start = np.zeros(self._n_images + len(self._of_group))
        start[: self._n_images] = 1.0
        changes = {
            name: np.zeros((len(self.sample.rows), value.shape[1]))
            for name, value in self._attackers_of_both.evaluate(start[None]).items()
        }
        differ = self.sample.differ
        for first in range(0, len(differ), _AT_ONCE):
            some = differ[first : first + _AT_ONCE]
            more, less = (self._move(start, some, step) for step in (_STEP, -_STEP))
            for name, change in changes.items():
                slope = (more[name] - less[name]) / (2 * _STEP)
                change[some] = slope * self.sample.population
        return changes

    def _move(
        self, start: Float64Array, images: IntArray, step: float
    ) -> Mapping[PartName, Float64Array]:
        """The numbers after a small step of each chosen gold image towards its true label."""
        weights = np.tile(start, (len(images), 1))
        lines = np.arange(len(images))
        weights[lines, self._machine[images]] -= step
        true = np.isin(images, self._of_group)
        column = self._n_images + np.searchsorted(self._of_group, images[true])
        weights[lines[true], column] += step
        return self._attackers_of_both.evaluate(weights)

    def estimates_of_gold(self, stats: Bootstrap) -> dict[PartName, Estimate]:
        """The numbers computed from the gold images alone."""
        of_group = self._of_group

        def evaluate(counts: Float64Array) -> Mapping[PartName, Float64Array]:
            weights = np.zeros((len(counts), self._n_images + len(of_group)))
            weights[:, self._n_images :] = (counts * self.sample.weights)[:, of_group]
            with np.errstate(divide="ignore", invalid="ignore"):
                return self._attackers_of_both.evaluate(weights)

        return stats.estimate_weighted(
            self.sample.keys,
            evaluate,
            trained=lambda name: name.what not in UNTRAINED,
            cross_fitted=True,
        )
