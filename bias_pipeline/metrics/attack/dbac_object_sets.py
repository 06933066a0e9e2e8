"""DBAC as its authors' code computes it. Guesses are weighted by the frequency of object sets.

The code is on a branch of their repository (kerner-lab/Bias-Amplification, ``text-dev``). A side's
omega is a mean over captions of Q P(other) / P(given). For A→T, Q is the attacker's probability of
the image's group. The given variable is the group. The other variable is the exact set of objects
that the caption names; the set may be empty. For T→A, the attacker gives a probability for the
truth about each object (whether it is in the image). Q is the product of these probabilities. The
given variable is the exact set of objects in the image. The other variable is the set of groups
that the caption names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.attack.dbac_direction import DirectionAttackers
from bias_pipeline.metrics.functional.dbac import dbac
from bias_pipeline.metrics.value_names import PartName


@dataclass(frozen=True, eq=False)
class _Side:
    """The set of objects or groups that each caption of one side names, for M images.

    Attributes:
        sets: (P, M): the set that each image's caption names, for each caption position.
        counts: (M, G * O): how many captions the image has, by given value of the image and set of
            the caption.
        quality: (P, S, M): the attackers' quality, or 0 where a seed does not test the image.
        tested: (P, S, M): 1 where a seed tests the image, else 0.
    """

    sets: IntArray
    counts: sparse.csr_array
    quality: Float64Array
    tested: Float64Array


class ObjectSetAttackers(DirectionAttackers):
    """Attackers for both sides. Guesses are weighted by how frequent object sets are."""

    def evaluate(self, weights: Float64Array) -> dict[PartName, Float64Array]:
        """All numbers of the direction under weights of images: (B, S), or (B, 1) for counts."""
        part = self.direction.part
        given = self._shares_of_given(weights)
        shares = {side: self._shares(side, weights) for side in SIDES}
        of_image = given[:, self._given_values]  # 0 only where the image's own weight is 0
        by_given = np.divide(weights, of_image, out=np.zeros_like(weights), where=of_image > 0)
        human, even = shares["human"], np.ones_like(shares["human"])
        by_prior = {
            "": {side: self._omega(side, weights, by_given, shares[side]) for side in SIDES},
            "shared": {side: self._omega(side, weights, by_given, human) for side in SIDES},
            "none": {side: self._omega(side, weights, weights, even) for side in SIDES},
            "priors": {side: self._prior(side, weights, shares[side], given) for side in SIDES},
        }
        values = {part(name): dbac(of["model"], of["human"]) for name, of in by_prior.items()}
        for side in SIDES:
            values[part("quality", side=side)] = by_prior["none"][side]
            values[part("prior", side=side)] = by_prior["priors"][side]
        return values

    def headline(self, weights: Float64Array) -> Float64Array:
        """(B, S): only the score, under image weights."""
        return self.evaluate(weights)[self.direction.part()]

    @cached_property
    def _given_values(self) -> IntArray:
        """(M,): the given value of each image, which is a group or a set of objects."""
        one = self.direction
        if one.to_task:
            return one.view.codes[one.images]
        return distinct_rows(one.counts.objects > 0)

    @cached_property
    def _named_sets(self) -> dict[str, IntArray]:
        """For each side, the set of objects or groups that each caption names."""
        one = self.direction
        tables = {
            side: one.all_tasks.mentions(side) if one.to_task else one.view.groups_named(side)
            for side in SIDES
        }
        every = distinct_rows(np.concatenate([t.toarray() > 0 for t in tables.values()]))
        model, human = np.split(every, [tables["model"].shape[0]])
        return {"model": model, "human": human}

    @property
    def _n_sets(self) -> int:
        return 1 + max(int(sets.max()) for sets in self._named_sets.values())

    @cached_property
    def _sides(self) -> dict[str, _Side]:
        return {side: self._side_of(side) for side in SIDES}

    def _side_of(self, side: str) -> _Side:
        one, named = self.direction, self._named_sets[side]
        captions = one.view.corpus.side(side)
        place = np.full(len(one.corpus), -1, np.int64)
        place[one.images] = np.arange(len(one.images))
        sets, quality, tested = [], [], []
        for k, predictions in enumerate(self.predictions[side]):
            chosen = captions.in_turn(k)
            rows = chosen[np.searchsorted(captions.image_rows[chosen], one.images)]
            sets.append(named[rows])
            of_seeds = np.zeros((2, self.n_seeds, len(one.images)))
            for seed, (images, truth, probs) in enumerate(predictions):
                guess = self.settings.scoring.per_guess(probs, truth)
                of_seeds[0, seed, place[images]] = guess if one.to_task else guess.prod(axis=1)
                of_seeds[1, seed, place[images]] = 1
            quality.append(of_seeds[0])
            tested.append(of_seeds[1])
        images = place[captions.image_rows]
        used = images >= 0
        column = self._given_values[images[used]] * self._n_sets + named[used]
        shape = (len(one.images), (1 + int(self._given_values.max())) * self._n_sets)
        counts = sparse.csr_array((np.ones(used.sum()), (images[used], column)), shape)
        return _Side(np.stack(sets), counts, np.stack(quality), np.stack(tested))

    def _shares_of_given(self, weights: Float64Array) -> Float64Array:
        """(B, G): P(given), computed from the images."""
        rows = np.arange(len(self._given_values))
        members = sparse.csr_array((np.ones(len(rows)), (rows, self._given_values)))
        shares: Float64Array = weights @ members / weights.sum(axis=1, keepdims=True)
        return shares

    def _pairs(self, side: str, weights: Float64Array) -> Float64Array:
        """(B, G, O): the weighted number of captions for each given value and set."""
        table = weights @ self._sides[side].counts
        return table.reshape(len(weights), -1, self._n_sets)

    def _shares(self, side: str, weights: Float64Array) -> Float64Array:
        """(B, O): P(other), which is how frequent each set is among the side's captions."""
        counts = self._pairs(side, weights).sum(axis=1)
        shares: Float64Array = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def _omega(
        self, side: str, weights: Float64Array, by_given: Float64Array, shares: Float64Array
    ) -> Float64Array:
        """(B, S): omega, the mean of Q P(other) / P(given) over the tested captions.

        ``by_given`` (B, M) are the image weights divided by P(given), and ``shares`` (B, O) are
        P(other). Both probabilities are 1 if the prior is left out.
        """
        one = self._sides[side]
        omegas = [
            (by_given * shares[:, sets]) @ quality.T / (weights @ tested.T)
            for sets, quality, tested in zip(one.sets, one.quality, one.tested, strict=True)
        ]
        return np.mean(omegas, axis=0)

    def _prior(
        self, side: str, weights: Float64Array, shares: Float64Array, given: Float64Array
    ) -> Float64Array:
        """(B, 1): the mean of P(other) / P(given) over all captions; attackers play no part."""
        pairs = self._pairs(side, weights)
        by_given = np.where(given > 0, pairs.sum(axis=(1, 2))[:, None] * given, np.inf)
        total = (pairs / by_given[:, :, None] * shares[:, None, :]).sum(axis=(1, 2))
        return total[:, None]


def distinct_rows(flags: np.ndarray) -> IntArray:
    """(N,): for each row of (N, C) flags, the index of the equal row in the list of distinct rows.

    Example:
        >>> distinct_rows(np.array([[True, False], [False, False], [True, False]])).tolist()
        [1, 0, 1]
    """
    _, number = np.unique(flags, axis=0, return_inverse=True)
    return np.asarray(number, np.int64).ravel()
