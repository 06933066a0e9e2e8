"""Dawid and Skene's estimate: it recovers planted errors, and no other matrices are likelier."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.stats.raters import consensus, error_range, label_confusion, majority_labels


def simulate(
    n_items: int, prior: Float64Array, confusions: Float64Array, seed: int = 0
) -> tuple[IntArray, IntArray]:
    """The truth of items, and what raters with these confusions answer."""
    generator = np.random.default_rng(seed)
    truth = generator.choice(len(prior), n_items, p=prior)
    columns = [
        np.array([generator.choice(len(prior), p=matrix[group]) for group in truth])
        for matrix in confusions
    ]
    return truth, np.stack(columns, axis=1)


def symmetric(error: float, n_groups: int = 2) -> Float64Array:
    matrix = np.full((n_groups, n_groups), error / (n_groups - 1))
    np.fill_diagonal(matrix, 1 - error)
    return matrix


RATERS = np.stack([symmetric(0.05), symmetric(0.15), np.array([[0.9, 0.1], [0.3, 0.7]])])


def test_planted_errors_are_recovered():
    _, answers = simulate(4000, np.array([0.6, 0.4]), RATERS)
    result = consensus(answers, 2)
    assert result.confusions == pytest.approx(RATERS, abs=0.03)
    assert result.prior == pytest.approx([0.6, 0.4], abs=0.03)


def test_it_finds_the_truth_more_often_than_the_majority():
    """Since it knows whom to trust."""
    raters = np.stack([symmetric(0.02), *(symmetric(0.35) for _ in range(4))])
    truth, answers = simulate(3000, np.array([0.5, 0.5]), raters)
    labels, _ = majority_labels(answers, 2)
    by_consensus = consensus(answers, 2).posterior.argmax(axis=1)
    assert (by_consensus == truth).mean() > (labels == truth).mean() + 0.05


def test_the_majority_errs_as_often_as_it_says():
    truth, answers = simulate(4000, np.array([0.6, 0.4]), RATERS)
    labels, labelled = majority_labels(answers, 2)
    actual = [[(labels[labelled & (truth == t)] == k).mean() for k in range(2)] for t in range(2)]
    assert label_confusion(answers, 2) == pytest.approx(np.array(actual), abs=0.02)


def test_groups_may_be_several_and_answers_absent():
    raters = np.stack([symmetric(0.1, 3)] * 4)
    _, answers = simulate(3000, np.array([0.5, 0.3, 0.2]), raters)
    answers[np.random.default_rng(1).random(answers.shape) < 0.3] = -1
    assert consensus(answers, 3).confusions == pytest.approx(raters, abs=0.04)


def test_no_other_matrices_are_likelier():
    """A witness: the likelihood of the observed answers, maximised by another method."""
    _, answers = simulate(120, np.array([0.6, 0.4]), RATERS, seed=3)
    gave = answers[:, :, None] == np.arange(2)

    def unlikely(free: Float64Array) -> float:
        """Minus the log-likelihood, smoothed as ours."""
        prior, confusions = softmax(free[:2]), softmax(free[2:].reshape(3, 2, 2), axis=2)
        each = np.einsum("nrk,rtk->nt", gave, np.log(confusions)) + np.log(prior)
        return float(-logsumexp(each, axis=1).sum() - 0.01 * np.log(confusions).sum())

    result = consensus(answers, 2)
    ours = np.concatenate([np.log(result.prior), np.log(result.confusions).ravel()])
    best = min(
        minimize(unlikely, ours + np.random.default_rng(n).normal(0, 0.3, 14)).fun for n in range(3)
    )
    assert unlikely(ours) <= best + 1e-3


@pytest.mark.parametrize("error", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_two_raters_have_a_range_that_holds_both_extremes(error, n_groups):
    alike = 1 - (1 - error) ** 2 - error**2 / (n_groups - 1)
    assert error_range(alike, n_groups)[1] == pytest.approx(error)
    assert error_range(error, n_groups)[0] == pytest.approx(error / 2)  # one makes all errors


def test_more_disagreement_than_chance_is_the_most():
    assert error_range(0.9, 2) == (0.45, 0.5)
