"""Counts captions by true label, estimated from the gold labels of a few images.

Each draw gives every image an exponentially distributed weight. So the images and the gold labels
of each cell are drawn from their posterior (a Dirichlet distribution, as in the Bayesian
bootstrap). The weights are computed from hashes of image ids. So two captioners have the same
weights, and their numbers can be subtracted draw by draw. An image has one weight, however many
captions it has in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse, special

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.hashing import UIntArray, hash_ids, random_words
from bias_pipeline.metrics.counting.resampling import ResamplingBlocks
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.gold import (
    NO_GROUP_LABELS,
    NO_GROUP_OUTCOMES,
    PRIOR,
    label_priors,
    true_label_counts,
)

DRAWS = 2_000
_BATCH = 250  # how many draws are made at a time
_LEAST_EXPECTED = 5.0  # gold images in a cell of the test of randomness; smaller cells are merged


@dataclass(frozen=True, eq=False)
class CaptionOutcomes:
    """The groups that each caption of a side names. An image may have several captions."""

    rows: IntArray  # (C,) the image of each caption
    # (C,) the only group it names; K for no group, K + 1 for several, K + 2 for declined
    outcomes: IntArray
    weights: Float64Array  # (C,) the weight of each caption


@dataclass(frozen=True, eq=False)
class TrueLabels:
    """The machine labels of N images and the gold labels of n of these images.

    A label is the index of one of K groups, K if nobody can tell the group, or K + 1 for any other
    label.
    """

    n_groups: int  # K
    machine: IntArray  # (N,)
    keys: UIntArray  # (N,) hashes of the images' ids
    rows: IntArray  # (n,) the gold images
    truth: IntArray  # (n,) their true labels
    chances: Float64Array  # (n,) chances with which they were drawn, up to a factor
    drawn_evenly: bool  # whether all images had the same chance
    draws: int = DRAWS

    def counts(self, captions: CaptionOutcomes, name: str) -> Float64Array:
        """(draws, T, O): a side's captions by true label and outcome, drawn from the posterior.

        For captions with a different ``name``, unknown labels are drawn independently.
        """
        cell, n_cells = self.cells(captions)
        shape = (len(self.machine), n_cells)
        table = sparse.csr_array((captions.weights, (captions.rows, cell)), shape=shape)
        within = self._gold_of(captions, cell, n_cells)
        generator = np.random.default_rng(int(hash_ids([name])[0]))
        blocks = ResamplingBlocks(np.flatnonzero(np.diff(table.indptr)), self.keys, n_cells)
        sums = blocks.sums(table)
        # So that no outcome is impossible
        of_machine = sums.sum(axis=0).reshape(-1, self.n_groups + NO_GROUP_LABELS).sum(axis=0)
        n_outcomes = self.n_groups + NO_GROUP_OUTCOMES
        unseen = np.tile(PRIOR * of_machine / max(of_machine.sum(), 1.0), n_outcomes)
        parts = []
        for first in range(0, self.draws, _BATCH):
            numbers = np.arange(first, min(first + _BATCH, self.draws))
            cells = _weights("cells", blocks.keys, numbers) @ sums
            cells = cells + generator.standard_gamma(unseen, size=cells.shape)
            known = _weights("gold", self.keys[self.rows], numbers) @ within
            gold = known.reshape(len(numbers), n_cells, -1)
            gold = gold + generator.standard_gamma(self._priors, size=gold.shape)
            parts.append(self._by_outcome(true_label_counts(cells, gold)))
        return np.concatenate(parts)

    def gold_counts(self, captions: CaptionOutcomes) -> Float64Array:
        """(1, T, O): the effective number of captions of gold images, weighted by 1 / chance."""
        weights = 1 / self.chances[self._place(captions)]
        known = self._place(captions) >= 0
        each = np.where(known, weights, 0.0) * captions.weights
        scale = share(each.sum(keepdims=True), (each**2).sum(keepdims=True))[0]
        return self._table(captions, each * scale)

    def labelled_counts(self, captions: CaptionOutcomes) -> Float64Array:
        """(1, T, O): the number of captions of gold images."""
        return self._table(captions, np.where(self._place(captions) >= 0, captions.weights, 0.0))

    def gold_cells(self, captions: CaptionOutcomes) -> Float64Array:
        """(C, T): the effective number of captions of gold images, by cell and true label."""
        cell, n_cells = self.cells(captions)
        sums = np.asarray(self._gold_of(captions, cell, n_cells).sum(axis=0), np.float64)
        return sums.reshape(n_cells, -1)

    def p_random(self, captions: CaptionOutcomes) -> float:
        """The chance that randomly drawn gold images are spread as unevenly over cells."""
        cell, n_cells = self.cells(captions)
        every = np.bincount(cell, captions.weights, n_cells)
        gold = np.bincount(
            cell, np.where(self._place(captions) >= 0, captions.weights, 0.0), n_cells
        )
        expected = gold.sum() * every / every.sum()
        small = expected < _LEAST_EXPECTED
        observed = np.append(gold[~small], gold[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
        used = expected > 0
        left = 1 - min(gold.sum() / every.sum(), 1.0)  # drawn without replacement
        if used.sum() < 2 or left <= 0:
            return 1.0
        distance = ((observed - expected)[used] ** 2 / expected[used]).sum() / left
        return float(special.chdtrc(used.sum() - 1, distance))

    @cached_property
    def _priors(self) -> Float64Array:
        """(C, T): the prior of each cell.

        The prior of the labels unsure and other is 0 if no gold image has the label.
        """
        priors = label_priors(self.n_groups).reshape(-1, self.n_groups + NO_GROUP_LABELS).copy()
        possible = np.bincount(self.truth, minlength=priors.shape[1]) > 0
        possible[: self.n_groups] = True
        priors[:, ~possible] = 0
        return priors

    def cells(self, captions: CaptionOutcomes) -> tuple[IntArray, int]:
        """The cell of each caption, (C,), and the number of cells."""
        n_labels = self.n_groups + NO_GROUP_LABELS
        cell = captions.outcomes * n_labels + self.machine[captions.rows]
        return cell, (self.n_groups + NO_GROUP_OUTCOMES) * n_labels

    def _place(self, captions: CaptionOutcomes) -> IntArray:
        """(C,): the index of each caption's image among the gold images; -1 for other images."""
        place = np.full(len(self.machine), -1)
        place[self.rows] = np.arange(len(self.rows))
        return place[captions.rows]

    def _gold_of(self, captions: CaptionOutcomes, cell: IntArray, n_cells: int) -> sparse.csr_array:
        """(n, C * T): the weights of each gold image's captions, by cell and true label.

        Weights are proportional to 1 / chance. The weights in a cell sum to its effective number of
        images.
        """
        place = self._place(captions)
        known = place >= 0
        place, cell = place[known], cell[known]
        weights = captions.weights[known] / self.chances[place]
        each = sparse.csr_array((weights, (place, cell)), shape=(len(self.rows), n_cells))
        total, squares = (np.asarray(e.sum(axis=0), np.float64) for e in (each, each**2))
        weights = weights * share(total, squares)[cell]
        n_labels = self.n_groups + NO_GROUP_LABELS
        column = cell * n_labels + self.truth[place]
        shape = (len(self.rows), n_cells * n_labels)
        return sparse.csr_array((weights, (place, column)), shape=shape)

    def _by_outcome(self, counts: Float64Array) -> Float64Array:
        """(B, T, O): the sums over machine labels, from a (B, C, T) table."""
        n_labels = self.n_groups + NO_GROUP_LABELS
        split = counts.reshape(len(counts), self.n_groups + NO_GROUP_OUTCOMES, n_labels, n_labels)
        return np.asarray(split.sum(axis=2).transpose(0, 2, 1), np.float64)

    def _table(self, captions: CaptionOutcomes, weights: Float64Array) -> Float64Array:
        """(1, T, O): the summed weights of captions of gold images."""
        place = self._place(captions)
        known = place >= 0
        n_outcomes = self.n_groups + NO_GROUP_OUTCOMES
        n_labels = self.n_groups + NO_GROUP_LABELS
        at = self.truth[place[known]] * n_outcomes + captions.outcomes[known]
        sums = np.bincount(at, weights[known], n_labels * n_outcomes)
        return np.asarray(sums, np.float64).reshape(1, n_labels, n_outcomes)


def _weights(purpose: str, keys: UIntArray, numbers: IntArray) -> Float64Array:
    """(B, I): exponential weights with mean 1, computed from hashes of image ids."""
    words = random_words(purpose, 0, keys, numbers.astype(np.uint64)[:, None])
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return -np.log(uniform)
