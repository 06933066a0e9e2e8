"""Computes the mean scores of guesses for several tasks under image weights, as one product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.hashing import mix
from bias_pipeline.stats.scoring import Scoring


@dataclass(frozen=True, eq=False)
class GuessSums:
    """The scores of one seed's guesses; equal scores are stored only once.

    Where a task is false, images with equal predictions have equal scores, so the score is stored
    once. Where a task is true, which is rare, the score of each image is stored.

    Attributes:
        table: (I, P + C): the first P columns have a 1 for the image's prediction (all are 0 if the
            image was not tested). The last C columns say how much more each task scores than if it
            were false.
        false: (P, C): the scores of each prediction where no task is true.
    """

    table: sparse.csr_array
    false: Float64Array

    @classmethod
    def from_guesses(
        cls,
        scoring: Scoring,
        place: IntArray,
        truth: IntArray,
        probs: Float64Array,
        n_images: int,
    ) -> GuessSums:
        """Stores M guesses.

        ``place`` (M,) is the index of each guessed image among all I images. ``truth`` has (M,)
        classes of one variable, or (M, C) values that are 1 where a task is true and else 0.
        ``probs`` are the attackers' predictions, see :mod:`bias_pipeline.stats.scoring`.
        """
        if truth.ndim == 1:
            false, kind = np.zeros((1, 1)), np.zeros(len(truth), np.int64)
            image, task = np.arange(len(truth)), np.zeros(len(truth), np.int64)
            more = scoring.per_guess(probs, truth)
        else:
            hashes = np.zeros(len(probs), np.uint64)
            for column in probs.T:
                hashes = mix(hashes ^ np.ascontiguousarray(column, np.float64).view(np.uint64))
            _, first, kind = np.unique(hashes, return_index=True, return_inverse=True)
            false = scoring.per_guess(probs[first], np.zeros_like(truth[first]))
            true = scoring.per_guess(probs[first], np.ones_like(truth[first]))
            image, task = np.nonzero(truth)
            more = (true - false)[kind[image], task]
        rows = np.concatenate([place, place[image]])
        columns = np.concatenate([kind, len(false) + task])
        values = np.concatenate([np.ones(len(place)), more])
        shape = (n_images, len(false) + false.shape[1])
        return cls(sparse.csr_array((values, (rows, columns)), shape=shape), false)

    def mean(self, weights: Float64Array) -> Float64Array:
        """(B, C): the mean scores of the tested images under (B, I) weights."""
        sums = np.asarray(weights @ self.table)
        tested, more = np.split(sums, [len(self.false)], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((tested @ self.false + more) / tested.sum(axis=1, keepdims=True))
