"""Attackers of one direction of DBAC, and the direction's numbers under weights of the images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split, seeds_in, with_fewer_images
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.attack.dbac_direction import Direction
from bias_pipeline.metrics.functional import dbac
from bias_pipeline.metrics.value_names import PartName


@dataclass(frozen=True, eq=False)
class _Block:
    """One seed's guesses on M test images, in their order, in C columns that give its qualities."""

    seed: int
    rows: IntArray
    scores: Float64Array  # (M, C) score of a guess where it belongs to a column, else 0
    counts: sparse.csr_array  # (C, M) 1 where it belongs to a column; (1, M) if to every column


class DirectionAttackers:
    """Fresh attackers of both sides, trained when first needed.

    Args:
        direction: what they guess, on which images.
        splits: one a seed, or one a fold.
        positions: how many human captions of an image are used; all that the metric uses if left
            out.
    """

    def __init__(
        self, direction: Direction, splits: Sequence[Split], positions: int | None = None
    ) -> None:
        self.direction, self.settings, self.splits = direction, direction.settings, splits
        self.positions = positions or direction.settings.positions
        self.n_seeds = len(seeds_in(splits))

    def with_fewer_images(self, share: float) -> DirectionAttackers:
        """Attackers of the first seed and position that learn from a share of its images."""
        return DirectionAttackers(self.direction, with_fewer_images(self.splits, share), 1)

    @cached_property
    def predictions(self) -> dict[str, list[Predictions]]:
        """Side to its attackers' predictions, one for each caption position.

        Raises:
            DataError: if no caption position covers all images.
        """
        sides = SIDES if self.direction.supported.any() else ()
        return {side: self._attack(side) for side in sides}

    @cached_property
    def blocks(self) -> dict[str, list[_Block]]:
        """Side to its attackers' guesses."""
        return {side: list(self._blocks(side)) for side in self.predictions}

    def evaluate(self, weights: Float64Array) -> dict[PartName, Float64Array]:
        """All numbers of the direction under weights of the images, (B, S) each."""
        one = self.direction
        model, human = (self._side(side, weights) for side in SIDES)
        given = one.given(weights)
        alike = dbac.Side(
            np.ones_like(human.quality), np.ones_like(human.overall), human.other, human.mentions
        )
        louder = dbac.Side(alike.quality, alike.overall, model.other, model.mentions)
        seeds = np.ones((1, self.n_seeds))
        values = {one.part(): self._score(model, human, given, one.prior)}
        priors = ("shared", "none") if one.by_labels else dbac.PRIORS
        values |= {one.part(prior): self._score(model, human, given, prior) for prior in priors}
        values[one.part("priors")] = self._score(louder, alike, given, "counts") * seeds
        for name, side in (("model", model), ("human", human)):
            values[one.part("quality", side=name)] = side.overall
            values[one.part("prior", side=name)] = side.other.mean(axis=-1) * seeds
        pairs = dbac.pair_scores(model, human, given, one.prior)
        values |= {
            one.pair(g, o): pairs[..., g, o]
            for g, o in zip(*np.nonzero(one.supported), strict=True)
        }
        if one.by_group:
            values |= {
                one.part(group=name): self._of_group(g, model, human, given)
                for g, name in enumerate(one.view.groups)
            }
        return values

    def headline(self, weights: Float64Array) -> Float64Array:
        """(B, S) the score alone under weights of the images."""
        model, human = (self._side(side, weights) for side in SIDES)
        return self._score(model, human, self.direction.given(weights), self.direction.prior)

    def _score(
        self, model: dbac.Side, human: dbac.Side, given: Float64Array, prior: str
    ) -> Float64Array:
        return dbac.dbac_score(
            model,
            human,
            given,
            self.direction.supported,
            aggregate=self.settings.aggregate,
            prior=prior,
        )

    def _of_group(
        self, group: int, model: dbac.Side, human: dbac.Side, given: Float64Array
    ) -> Float64Array:
        """(B, S) the score over the pairs of one group."""
        in_group = np.zeros_like(self.direction.supported)
        in_group[(group, slice(None)) if self.direction.to_task else (slice(None), group)] = True
        how = self.settings.aggregate
        return dbac.dbac_score(
            model,
            human,
            given,
            self.direction.supported & in_group,
            aggregate="weighted" if how == "marginal" else how,  # marginal has no pairs
            prior=self.direction.prior,
        )

    def _side(self, side: str, weights: Float64Array) -> dbac.Side:
        one = self.direction
        quality, overall = self._quality(side, weights)
        return dbac.Side(quality, overall, one.other(side, weights), one.mentions(side, weights))

    def _quality(self, side: str, weights: Float64Array) -> tuple[Float64Array, Float64Array]:
        """(B, S, G, O) quality on pairs and (B, S) on all captions, mean over positions."""
        n_columns = self.blocks[side][0].scores.shape[1]
        total = np.zeros((len(weights), self.n_seeds, n_columns))
        n_known = np.zeros_like(total)
        by_image = np.ascontiguousarray(weights.T)
        for block in self.blocks[side]:
            every_image = len(block.rows) == weights.shape[1]
            block_weights = weights if every_image else weights[:, block.rows]
            block_counts = block.counts @ (by_image if every_image else by_image[block.rows])
            with np.errstate(divide="ignore", invalid="ignore"):
                quality = self.settings.scoring.link(
                    (block_weights @ block.scores) / block_counts.T
                )
            known = np.isfinite(quality)
            total[:, block.seed] += np.where(known, quality, 0.0)
            n_known[:, block.seed] += known
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n_known
        return self._shaped(mean[..., :-1]), mean[..., -1]

    def _shaped(self, columns: Float64Array) -> Float64Array:
        """(B, S, G, O) from the columns of the blocks."""
        given, other = map(len, self.direction.values)
        if self.direction.to_task:
            return columns.reshape(*columns.shape[:2], given, other)
        return np.broadcast_to(columns[..., None], (*columns.shape, other))

    def _attack(self, side: str) -> list[Predictions]:
        one = self.direction
        captions = one.ready.side(side)
        usable = np.zeros(len(one.ready), bool)
        usable[one.images] = True
        captions = captions.take(usable[captions.image_rows])
        predictions = []
        classes = one.values[0]
        for k, of_position in enumerate(captions.by_position(self.positions)):
            if len(of_position) == len(one.images):
                name = f"{one.name}:{side}:{k}"
                data = LabelledCaptions(name, of_position, one.labels, len(classes), classes)
                predictions.append(self.settings.probe.fit_predict(data, self.splits))
        if not predictions:
            raise DataError(
                f"captioner {one.corpus.captioner!r}: no {side} caption position covers all "
                f"{len(one.images)} images that have both sides"
            )
        return predictions

    def _blocks(self, side: str) -> Iterator[_Block]:
        """Columns: the pairs (A->T) or the tasks (T->A), then all guesses together."""
        one = self.direction
        place = np.full(len(one.corpus), -1, np.int64)
        place[one.images] = np.arange(len(one.images))
        for k, predictions in enumerate(self.predictions[side]):
            for seed, (images, truth, probs) in enumerate(predictions):
                guess = self.settings.scoring.per_guess(probs, truth)
                if one.to_task:
                    counts = one.pairs_named(side, k, images, truth)
                    scores = counts * guess[:, None]
                    guess = guess[:, None]
                else:
                    counts, scores = np.empty((len(guess), 0)), guess
                all_guesses = guess.mean(axis=1, keepdims=True)
                scores = np.hstack([scores, all_guesses])
                counts = np.hstack([counts, np.ones_like(all_guesses)])
                order = np.argsort(place[images])
                belongs = sparse.csr_array(counts[order].T)
                yield _Block(seed, place[images][order], scores[order], belongs)
