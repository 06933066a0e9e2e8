import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.metrics import functional
from bias_pipeline.stats.scoring import Accuracy, Confidence, InverseCrossEntropy, Lic, correct
from tests.oracles import oracle

SCORINGS = [Accuracy(), Lic(), Confidence(), InverseCrossEntropy()]


def guesses(k: int, m: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.ones(k), m), generator.integers(0, k, m)


@pytest.mark.parametrize("name", ["leakage", "lic", "imagecaptioner2"])
def test_published_worked_case(name):
    published = oracle("scoring_functions")
    case = published["cases"][0]
    p, truth = np.array(case["p_female_and_is_female"]).T
    result = getattr(functional, name)(np.stack([1 - p, p], axis=1), truth.astype(np.int64))
    assert result == pytest.approx(case["expected"][name], abs=published["tolerance_abs"])


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("k", [2, 3, 7])
def test_chance_is_the_score_of_a_uniform_prediction(scoring, k):
    truth = np.repeat(np.arange(k), 5)
    per_guess = scoring.per_guess(np.full((len(truth), k), 1 / k), truth)
    assert scoring.link(per_guess.mean()) == pytest.approx(scoring.chance(k))


@pytest.mark.parametrize("scoring", SCORINGS[:3])
@given(k=st.integers(2, 5), seed=st.integers(0, 1000))
def test_scores_lie_between_zero_and_one(scoring, k, seed):
    per_guess = scoring.per_guess(*guesses(k, seed=seed))
    assert per_guess.min() >= 0
    assert per_guess.max() <= 1


@pytest.mark.parametrize("scoring", SCORINGS)
@given(seed=st.integers(0, 1000))
def test_renaming_groups_changes_nothing(scoring, seed):
    probs, truth = guesses(3, seed=seed)
    order = np.array([2, 0, 1])
    renamed = scoring.per_guess(probs[:, order], np.argsort(order)[truth])
    np.testing.assert_allclose(renamed, scoring.per_guess(probs, truth))


@given(seed=st.integers(0, 1000))
def test_lic_never_exceeds_accuracy_nor_confidence(seed):
    probs, truth = guesses(3, seed=seed)
    lic = functional.lic(probs, truth)
    assert lic <= min(functional.leakage(probs, truth), functional.imagecaptioner2(probs, truth))


def test_a_tie_goes_to_the_last_group():
    assert correct(np.full((3, 3), 1 / 3), np.arange(3)).tolist() == [0, 0, 1]


def test_tasks_are_scored_one_by_one():
    probs, truth = np.array([[0.9, 0.2]]), np.array([[1, 1]])
    assert Accuracy().per_guess(probs, truth).tolist() == [[1.0, 0.0]]


def test_a_sure_attacker_does_not_explode_right_or_wrong():
    probs, scoring = np.array([[0.0, 1.0]]), InverseCrossEntropy(bound=0.01)
    right = scoring.per_guess(probs, np.array([1]))
    assert scoring.link(right.mean()) == pytest.approx(100)
    assert np.isfinite(InverseCrossEntropy().per_guess(probs, np.array([0]))).all()


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
def test_the_two_parts_of_lic_add_up(values):
    right_m, sure_m, right_h, sure_h = map(np.array, values)
    parts = functional.accuracy_and_confidence_parts(
        (right_m, right_m * sure_m), (right_h, right_h * sure_h)
    )
    assert sum(parts) == pytest.approx(right_m * sure_m - right_h * sure_h)


def test_a_calibrated_attacker_has_no_calibration_error():
    probs = np.tile([0.25, 0.75], (4, 1))
    error = functional.expected_calibration_error(probs, np.array([1, 1, 1, 0]))
    assert error == pytest.approx(0)


@pytest.mark.parametrize("relation", functional.RELATIONS.values(), ids=functional.RELATIONS)
def test_a_relation_is_neutral_for_equal_sides_and_rises_with_the_model(relation):
    low, equal, high = relation.of(np.array([0.3, 0.4, 0.5]), np.full(3, 0.4))
    assert equal == pytest.approx(relation.neutral)
    assert low < equal < high


def test_absent_is_nan_never_zero():
    assert np.isnan(functional.normalised_difference(np.array(0.0), np.array(0.0)))


@pytest.mark.parametrize("scoring", SCORINGS)
def test_only_scores_up_to_one_are_fractions(scoring):
    certain = scoring.per_guess(np.array([[0.0, 1.0]]), np.array([1]))
    assert (scoring.unit == "fraction") is bool(scoring.link(certain.mean()) <= 1)
