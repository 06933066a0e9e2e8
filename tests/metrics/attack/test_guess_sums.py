"""Sums of guesses against the definition: the weighted mean of each guess's score."""

import numpy as np
import pytest

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.attack.guess_sums import GuessSums
from bias_pipeline.stats.scoring import Accuracy, Confidence, InverseCrossEntropy, Lic, Scoring

RANDOM = np.random.default_rng(5)
N_IMAGES, N_TESTED = 40, 30
PLACE = RANDOM.permutation(N_IMAGES)[:N_TESTED]
WEIGHTS = RANDOM.poisson(1.0, (6, N_IMAGES)).astype(float)


def by_definition(scoring: Scoring, truth: np.ndarray, probs: np.ndarray) -> Float64Array:
    guess = scoring.per_guess(probs, truth).reshape(N_TESTED, -1)
    tested = WEIGHTS[:, PLACE]
    return np.asarray(tested @ guess / tested.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("scoring", [Accuracy(), Lic(), Confidence(), InverseCrossEntropy()])
@pytest.mark.parametrize("n_alike", [3, N_TESTED])
def test_means_of_several_tasks_are_those_of_all_guesses(scoring, n_alike):
    probs = RANDOM.random((n_alike, 7))[np.arange(N_TESTED) % n_alike]
    probs[0, 0], probs[1, 1] = 0.5, 0.0
    truth = (RANDOM.random((N_TESTED, 7)) < 0.2).astype(np.int64)
    mean = GuessSums.from_guesses(scoring, PLACE, truth, probs, N_IMAGES).mean(WEIGHTS)
    assert mean == pytest.approx(by_definition(scoring, truth, probs), rel=1e-12)


@pytest.mark.parametrize("scoring", [Accuracy(), Lic(), Confidence(), InverseCrossEntropy()])
def test_means_of_one_variable_are_those_of_all_guesses(scoring):
    probs = RANDOM.dirichlet(np.ones(3), N_TESTED)
    truth = RANDOM.integers(0, 3, N_TESTED)
    mean = GuessSums.from_guesses(scoring, PLACE, truth, probs, N_IMAGES).mean(WEIGHTS)
    assert mean == pytest.approx(by_definition(scoring, truth, probs), rel=1e-12)


def test_a_mean_of_no_tested_image_is_absent():
    untested = np.zeros((1, N_IMAGES))
    untested[0, np.setdiff1d(np.arange(N_IMAGES), PLACE)] = 1.0
    truth = np.zeros((N_TESTED, 2), np.int64)
    sums = GuessSums.from_guesses(Accuracy(), PLACE, truth, np.zeros((N_TESTED, 2)), N_IMAGES)
    assert np.isnan(sums.mean(untested)).all()
