import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.metrics import functional
from bias_pipeline.scoring import Accuracy, Confidence, InverseCrossEntropy, Lic, correct
from tests.corpora import DATA

SCORINGS = [Accuracy(), Lic(), Confidence(), InverseCrossEntropy()]


def guesses(k: int, m: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.ones(k), m), generator.integers(0, k, m)


@pytest.mark.parametrize("name", ["leakage", "lic", "imagecaptioner2"])
def test_published_worked_case(name):
    path = DATA.parent / "oracles" / "scoring_functions.json"
    if not path.is_file():
        pytest.skip(f"no oracle at {path}; set BIAS_PIPELINE_DATA to have this test run")
    oracle = json.loads(path.read_text())
    case = oracle["cases"][0]
    p, truth = np.array(case["p_female_and_is_female"]).T
    probs = np.stack([1 - p, p], axis=1)
    score = {
        "leakage": functional.leakage,
        "lic": functional.lic,
        "imagecaptioner2": functional.imagecaptioner2,
    }[name]
    result = score(probs, truth.astype(np.int64))
    assert result == pytest.approx(case["expected"][name], abs=oracle["tolerance_abs"])


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


def test_a_sure_attacker_does_not_explode():
    probs, truth = np.array([[0.0, 1.0]]), np.array([1])
    scoring = InverseCrossEntropy(bound=0.01)
    assert scoring.link(scoring.per_guess(probs, truth).mean()) == pytest.approx(100)


def test_a_sure_wrong_attacker_stays_finite():
    probs, truth = np.array([[0.0, 1.0]]), np.array([0])
    assert np.isfinite(InverseCrossEntropy().per_guess(probs, truth)).all()


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


@pytest.mark.parametrize("name", functional.RELATIONS)
def test_a_relation_is_neutral_for_equal_sides(name):
    relation = functional.RELATIONS[name]
    assert relation.of(np.array(0.4), np.array(0.4)) == pytest.approx(relation.neutral)


@pytest.mark.parametrize("name", functional.RELATIONS)
def test_a_relation_rises_with_the_model(name):
    relation = functional.RELATIONS[name]
    low, high = relation.of(np.array([0.3, 0.5]), np.array([0.4, 0.4]))
    assert low < high


def test_absent_is_nan_never_zero():
    assert np.isnan(functional.normalised(np.array(0.0), np.array(0.0)))


@pytest.mark.parametrize("scoring", SCORINGS)
def test_only_scores_up_to_one_are_fractions(scoring):
    certain = scoring.per_guess(np.array([[0.0, 1.0]]), np.array([1]))
    assert (scoring.unit == "fraction") is bool(scoring.link(certain.mean()) <= 1)
