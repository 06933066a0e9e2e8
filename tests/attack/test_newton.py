"""Logistic regressions fitted together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

from bias_pipeline.attack import newton
from bias_pipeline.attack.newton import DesignMatrix, decide, fit

C = 0.5


@pytest.fixture(scope="module", autouse=True)
def solved_to_the_last_digits():
    """Optima are compared here, so regressions go on long after no score would change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newton, "TOLERANCE", 5e-6)
        yield


def problem(seed: int, n_fits: int, n_outputs: int = 1) -> tuple[np.ndarray, ...]:
    """Features (40, 6), counts (40, B) and truths (40, B, K)."""
    generator = np.random.default_rng(seed)
    x = (generator.random((40, 6)) < 0.4).astype(float)
    counts = generator.integers(0, 4, (40, n_fits)).astype(float)
    shares = generator.dirichlet(np.ones(max(2, n_outputs)), (40, n_fits))
    truths = counts[:, :, None] * shares
    return x, counts, truths if n_outputs > 1 else truths[:, :, :1]


def slope(x: np.ndarray, counts: np.ndarray, truths: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The gradient of one objective, (F + 1, K), written out apart from the solver."""
    scores = x @ weights[:-1] + weights[-1]
    if truths.shape[1] == 1:
        probs = 1 / (1 + np.exp(-scores))
    else:
        probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    residual = counts[:, None] * probs - truths
    penalty = np.vstack([weights[:-1], np.zeros((1, truths.shape[1]))])
    return C * np.vstack([x.T @ residual, residual.sum(axis=0)]) + penalty


@given(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from([1, 3, 4]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_slopes_are_zero_where_a_regression_ends(seed, n_fits, n_outputs, dense):
    x, counts, truths = problem(seed, n_fits, n_outputs)
    weights = fit(x if dense else sparse.csr_array(x), counts, truths, C)
    for item in range(n_fits):
        left = slope(x, counts[:, item], truths[:, item], weights[:, item])
        assert np.abs(left).max() < 1e-4


@given(st.integers(0, 10_000), st.integers(2, 19), st.sampled_from([1, 3]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_who_stands_beside_changes_no_digit(seed, n_fits, n_outputs, rare):
    x, counts, truths = problem(seed, n_fits, n_outputs)
    if rare:  # the one beside the compared one has another preconditioner
        counts[:, 0] *= 0.01
        truths[:, 0] *= 0.01
    together = fit(sparse.csr_array(x), counts, truths, C)
    alone = fit(sparse.csr_array(x), counts[:, 1:2], truths[:, 1:2], C)
    np.testing.assert_array_equal(together[:, 1], alone[:, 0])


def test_a_general_optimiser_finds_the_same_optimum():
    x, counts, truths = problem(3, 1)

    def objective(weights: np.ndarray) -> float:
        scores = x @ weights[:-1] + weights[-1]
        losses = counts[:, 0] * np.logaddexp(0, scores) - truths[:, 0, 0] * scores
        return float(C * losses.sum() + 0.5 * (weights[:-1] ** 2).sum())

    result = optimize.minimize(objective, np.zeros(7), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(fit(x, counts, truths, C)[:, 0, 0], result, atol=1e-5)


@pytest.mark.parametrize("level", [1, 2])
def test_curvatures_that_differ_fiftyfold_become_alike(level):
    """Frequent features that often occur together, as words of captions do."""
    generator = np.random.default_rng(0)
    topic = generator.random((4000, 1)) < 0.5
    rates = np.linspace(0.05, 0.5, 30) * np.where(topic, 1.5, 0.5)
    x = (generator.random((4000, 30)) < rates).astype(float)
    ones = np.hstack([x, np.ones((4000, 1))])
    curvature = C / 4.0 ** (level + 1) * ones.T @ ones + np.eye(31)
    inverse = DesignMatrix(sparse.csr_array(x), C).usual_inverse(level)
    turned = inverse.times(curvature.astype(np.float32)[:, :, None])[:, :, 0]
    before, after = (np.linalg.eigvals(matrix).real for matrix in (curvature, turned))
    assert before.max() / before.min() > 50
    assert after.max() / after.min() == pytest.approx(1, abs=1e-3)


def test_an_item_that_counts_twice_is_two_items():
    x, counts, truths = problem(4, 1)
    rows = np.repeat(np.arange(40), counts[:, 0].astype(int))
    shares = (truths[:, 0] / np.maximum(counts, 1))[rows][:, None]
    spelled_out = fit(x[rows], np.ones((len(rows), 1)), shares, C)
    np.testing.assert_allclose(fit(x, counts, truths, C), spelled_out, atol=1e-5)


def test_an_item_that_counts_nowhere_moves_no_optimum():
    x, counts, truths = problem(5, 3)
    counts[::3] = truths[::3] = 0
    used = counts.any(axis=1)
    whole = fit(sparse.csr_array(x), counts, truths, C)
    without = fit(sparse.csr_array(x[used]), counts[used], truths[used], C)
    np.testing.assert_allclose(whole, without, atol=2e-5)


def test_features_larger_than_the_ones_leave_the_intercept_free():
    x, counts, truths = problem(9, 1)
    weights = fit(3 * x[:30], counts[:30], truths[:30], C)  # one feature is solved for with it
    left = slope(3 * x[:30], counts[:30, 0], truths[:30, 0], weights[:, 0])
    assert np.abs(left).max() < 1e-4


def test_an_unknown_feature_weighs_nothing_and_is_a_feature_less():
    x, counts, truths = problem(5, 2)
    known = np.ones((6, 2), bool)
    known[2, 1] = False
    weights = fit(sparse.csr_array(x), counts, truths, C, known)
    assert weights[2, 1, 0] == 0
    assert weights[2, 0, 0] != 0
    without = fit(sparse.csr_array(np.delete(x, 2, axis=1)), counts, truths, C)
    np.testing.assert_allclose(np.delete(weights[:, 1], 2, axis=0), without[:, 1], atol=1e-5)


@pytest.mark.parametrize("n_fits", [1, 3])
def test_without_a_feature_the_shares_of_the_labels_are_predicted(n_fits):
    x, counts, truths = problem(5, n_fits)
    weights = fit(sparse.csr_array(x[:, :0]), counts, truths, C)
    shares = truths[:, :, 0].sum(axis=0) / counts.sum(axis=0)
    np.testing.assert_allclose(1 / (1 + np.exp(-weights[0, :, 0])), shares, atol=1e-4)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_labels_that_are_all_the_same_end_at_finite_weights(label):
    x, _, _ = problem(6, 1)
    counts = np.ones((40, 1))
    weights = fit(sparse.csr_array(x), counts, np.full((40, 1, 1), label), C)
    probs = 1 / (1 + np.exp(-decide(x, weights)))
    assert np.isfinite(weights).all()
    assert np.abs(probs - label).max() < 1e-3


def test_a_group_that_no_item_has_is_hardly_ever_predicted():
    x, counts, truths = problem(7, 1, 3)
    truths[..., 2] = 0
    counts = truths.sum(axis=2)
    scores = decide(x, fit(sparse.csr_array(x), counts, truths, C))[:, 0]
    probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert probs[:, 2].max() < 1e-3


@pytest.mark.parametrize("kind", [sparse.csr_array, np.asarray])
def test_squares_and_columns_are_those_of_scipy_and_numpy(kind):
    numbers = np.random.default_rng(4).random((30, 12)) * (np.arange(12) % 3 > 0)
    x, chosen = kind(numbers), np.array([0, 1, 5, 11])
    for matrix, expected in (
        (newton._squares(x), numbers * numbers),
        (newton._of_features(x, chosen), numbers[:, chosen]),
    ):
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        assert (dense == expected).all()
