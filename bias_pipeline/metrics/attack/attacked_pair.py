"""Predictions of attackers on the captioner's and the annotators' captions of the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.metrics.functional.attack import expected_calibration_error
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.scoring import Accuracy, Lic, Scoring


@dataclass(frozen=True, eq=False)
class Pair:
    """Predictions on the captioner's and the annotators' captions of the same images."""

    model: Sequence[Predictions]
    human: Sequence[Predictions]
    cross_fitted: bool

    def of_first_seed(self) -> Pair:
        """The predictions of the first seed alone."""
        model, human = ([p.of_first_seed() for p in side] for side in (self.model, self.human))
        return Pair(model, human, self.cross_fitted)

    @classmethod
    def of_all(cls, pairs: Sequence[Pair]) -> Pair:
        """One pair that joins several pairs. The pair's score is the mean over all attackers."""
        model = [one for pair in pairs for one in pair.model]
        human = [one for pair in pairs for one in pair.human]
        return cls(model, human, pairs[0].cross_fitted)

    def tables(self, scoring: Scoring) -> list[ScoreTable]:
        """Score tables (model, human) by the metric's own scoring, by accuracy, and by LIC."""
        three = scoring, Accuracy(scoring.average), Lic(scoring.average)
        of_kind = {
            type(how): [ScoreTable.from_predictions(side, how) for side in (self.model, self.human)]
            for how in three
        }
        return [table for how in three for table in of_kind[type(how)]]


def calibration(predictions: Sequence[Predictions]) -> Estimate:
    """The expected calibration error, averaged over positions and then over seeds."""
    per_seed = np.mean(
        [
            [expected_calibration_error(p, t) for _, t, p in of_position]
            for of_position in predictions
        ],
        axis=0,
    )
    std = float(np.std(per_seed, ddof=1)) if len(per_seed) > 1 else float("nan")
    return Estimate(float(per_seed.mean()), std, n_seeds=len(per_seed))
