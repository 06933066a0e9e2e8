"""Mean scores of guesses at several tasks under weights of images, computed as one product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.hashing import mix
from bias_pipeline.stats.scoring import Scoring


@dataclass(frozen=True, eq=False)
class GuessSums:
    """The scores of one seed's guesses, in which equal scores are stored once.

    If a task is false, images with equal predictions have equal scores, which are stored once. If a
    task is true, which is rare, each image's score is stored.

    Attributes:
        table: (I, P + C) 1 for an image's prediction among P (all 0 if it was not tested), then
            how much more each of C tasks scores than if it were false.
        false: (P, C) scores of each prediction where no task is true.
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
        """The sums of M guesses.

        ``place`` (M,) is the place of each guessed image among all I images. ``truth`` is (M,)
        classes of one variable, or (M, C) values 0 or 1 for each task. ``probs`` are the attackers'
        predictions, see :mod:`bias_pipeline.stats.scoring`.
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
        """(B, C) mean scores of the tested images under (B, I) weights."""
        sums = np.asarray(weights @ self.table)
        tested, more = np.split(sums, [len(self.false)], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((tested @ self.false + more) / tested.sum(axis=1, keepdims=True))
