"""Scores of many attackers on the images they were tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.scoring import Scoring

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """One number for each image and attacker.

    Attributes:
        images: (I,) corpus rows of the images that some attacker was tested on, ascending.
        values: (I, A) scores, NaN where an attacker was not tested on an image.
        seed_of: (A,) which of the S seeds an attacker belongs to.
        n_seeds: S.
        scoring: what made the numbers; its link turns an attacker's mean into its score.
    """

    images: IntArray
    values: FloatArray
    seed_of: IntArray
    n_seeds: int
    scoring: Scoring

    @classmethod
    def of(cls, predictions: Sequence[Predictions], scoring: Scoring) -> ScoreTable:
        """Score stored predictions.

        Args:
            predictions: those of one side, one item a caption position, all of the same seeds.
            scoring: how a guess is scored.
        """
        n_seeds = len(predictions[0].seeds)
        rows = np.unique(np.concatenate([i for p in predictions for i in p.images]))
        values = np.full((len(rows), n_seeds * len(predictions)), np.nan)
        for column, (images, truth, probs) in enumerate(b for p in predictions for b in p):
            values[np.searchsorted(rows, images), column] = scoring.per_guess(probs, truth)
        seed_of = np.tile(np.arange(n_seeds), len(predictions))
        return cls(rows, values, seed_of, n_seeds, scoring)

    def per_seed(self, weights: FloatArray | None = None) -> FloatArray:
        """The mean score of each seed's attackers.

        Args:
            weights: (B, I) how often each image counts; once if left out.

        Returns:
            (B, S), or (S,) without weights. NaN where an attacker has no image left.
        """
        if weights is None:
            return self.per_seed(np.ones((1, len(self.images))))[0]
        tested = np.isfinite(self.values)
        total = weights @ np.where(tested, self.values, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = self.scoring.link(total / (weights @ tested.astype(np.float64)))
        member = np.eye(self.n_seeds)[self.seed_of]
        return np.asarray(scores @ (member / member.sum(axis=0)), np.float64)

    def at(self, images: IntArray) -> ScoreTable:
        """The same table with one row for each of the given images, NaN rows where untested."""
        values = np.full((len(images), self.values.shape[1]), np.nan)
        place = np.searchsorted(self.images, images)
        inside = place < len(self.images)
        found = np.flatnonzero(inside)[self.images[place[inside]] == images[inside]]
        values[found] = self.values[place[found]]
        return ScoreTable(images, values, self.seed_of, self.n_seeds, self.scoring)
