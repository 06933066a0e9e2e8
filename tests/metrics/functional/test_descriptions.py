"""Differences on comparable pictures, and annotators at the captioner's rate, by other means."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.metrics.functional.comparable import Comparison, CrossFittedRidge, _folds
from bias_pipeline.metrics.functional.described_differences import described_differences
from bias_pipeline.metrics.functional.descriptions import (
    Annotators,
    HazardRatio,
    Reference,
    annotators_at_rate,
    hazard_ratios,
)

RANDOM = np.random.default_rng(1)


def pictures(n: int, effect: float = 0.0, seed: int = 0):
    """Groups and one description that follow two of ten features of the pictures."""
    random = np.random.default_rng(seed)
    features = (random.random((n, 10)) < 0.3).astype(float)
    groups = (random.random(n) < 0.3 + 0.4 * features[:, 0]).astype(float)
    rate = 0.1 + 0.3 * features[:, 0] + 0.1 * features[:, 1] + effect * groups
    says = (random.random(n) < rate).astype(float)
    keys = hash_ids(map(str, range(n)))
    table, folds = sparse.csr_array(features), np.arange(n) % 5
    return Comparison.fit(groups, table, folds, keys), says[:, None]


def test_ridge_is_that_of_the_normal_equations():
    features = RANDOM.random((60, 4))
    values, folds = RANDOM.random((60, 3)), np.arange(60) % 5
    fitted = CrossFittedRidge(_folds(sparse.csr_array(features), folds), 10.0).predict(values)
    for fold in range(5):
        training, tested = folds != fold, folds == fold
        centre, level = features[training].mean(axis=0), values[training].mean(axis=0)
        x = features[training] - centre
        slopes = np.linalg.solve(x.T @ x + 10 * np.eye(4), x.T @ (values[training] - level))
        assert fitted[tested] == pytest.approx(level + (features[tested] - centre) @ slopes)


@pytest.mark.parametrize("effect", [0.0, 0.15])
def test_the_difference_is_that_on_comparable_pictures(effect):
    comparison, says = pictures(20_000, effect)
    raw = says[comparison.groups == 1].mean() - says[comparison.groups == 0].mean()
    difference = float(comparison.influence @ comparison.residuals(says)[:, 0])
    assert raw > effect + 0.08  # the pictures differ
    assert difference == pytest.approx(effect, abs=0.02)
    assert 0.5 < comparison.overlap < 1


def test_permuted_groups_differ_by_nothing_on_average():
    comparison, says = pictures(3000, 0.2)
    permuted = comparison.permuted_influence.T @ comparison.residuals(says)
    assert permuted.mean() == pytest.approx(0, abs=3 * permuted.std() / 200**0.5)


def test_without_annotators_nothing_is_subtracted():
    comparison, says = pictures(600, 0.2)
    one = described_differences(comparison, says, None, np.array([0]))
    assert one.references == (Reference.NONE,)
    assert one.excess.values[0] == pytest.approx(one.shown.values[0], abs=0.01)


@pytest.mark.parametrize("speakers", [1, 2, 3, 4, 5])
def test_the_chance_that_some_annotators_say_it_is_that_of_all_choices(speakers):
    annotations = [[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1]]
    annotators = Annotators(
        np.array([[float(sum(one))] for one in annotations]),
        np.array([len(one) for one in annotations]),
    )
    expected = [
        np.mean([any(c) for c in combinations(one, min(speakers, len(one)))]) for one in annotations
    ]
    assert annotators.share_of(speakers)[:, 0] == pytest.approx(expected)


def test_annotators_are_as_many_as_nine_of_ten_images_have():
    assert Annotators(np.zeros((20, 1)), np.array([1, *[3] * 9, *[5] * 10])).n_joined == 3
    assert Annotators(np.zeros((20, 1)), np.array([1, 1, 1, *[5] * 17])).n_joined == 1


@pytest.mark.parametrize("log_ratio", [-1.0, 0.0, 0.7, 4.0])
def test_a_hazard_ratio_gives_the_rates_that_it_is_made_of(log_ratio):
    hazard, share = 0.2, 0.4
    first, second = 1 - np.exp(-hazard), 1 - np.exp(-hazard * np.exp(log_ratio))
    together = share * second + (1 - share) * first
    difference, change = HazardRatio(log_ratio, 0.1).difference(
        np.array([together]), np.array([share])
    )
    assert difference[0] == pytest.approx(second - first, abs=1e-6)
    assert change[0] > 0


def test_a_hazard_ratio_is_measured_as_it_was_planted():
    random, n = np.random.default_rng(3), 30_000
    groups = (random.random(n) < 0.4).astype(float)
    hazard = 0.05 * np.exp(1.2 * groups)
    counts = random.binomial(5, 1 - np.exp(-hazard))[:, None].astype(float)
    features = sparse.csr_array((random.random((n, 3)) < 0.5).astype(float))
    comparison = Comparison.fit(groups, features, np.arange(n) % 5, hash_ids(map(str, range(n))))
    (ratio,) = hazard_ratios(comparison, Annotators(counts, np.full(n, 5)))
    assert ratio.log_ratio == pytest.approx(1.2, abs=3 * ratio.error)
    assert 0.01 < ratio.error < 0.06


def at_rate(rate: float, share: float, ratios=None, rare=False):
    """What annotators' part rests on if the captioner says a concept at a rate."""
    n, random = 400, np.random.default_rng(5)
    groups = (np.arange(n) % 2).astype(float)
    features = sparse.csr_array((random.random((n, 3)) < 0.5).astype(float))
    comparison = Comparison.fit(groups, features, np.arange(n) % 5, hash_ids(map(str, range(n))))
    counts = random.binomial(3, share, (n, 1)).astype(float)
    annotators = Annotators(counts, np.full(n, 3), ratios or {}, np.array([rare]))
    return annotators_at_rate(comparison, annotators, np.array([rate]), np.full((n, 1), rate))


@pytest.mark.parametrize(
    ("rate", "share", "ratios", "rare", "reference"),
    [
        (0.05, 0.1, {}, False, Reference.ANNOTATORS),
        (0.2, 0.1, {}, False, Reference.ANNOTATORS),
        (0.2, 0.1, {0: HazardRatio(1.0, 0.1)}, False, Reference.ANNOTATORS),
        (0.4, 0.1, {}, False, Reference.ANNOTATORS),  # fewer than six annotators would be needed
        (0.6, 0.1, {}, False, Reference.UNKNOWN),
        (0.6, 0.1, {0: HazardRatio(1.0, 0.1)}, False, Reference.RATIO),
        (0.3, 0.004, {}, True, Reference.HARDLY),
        (0.3, 0.03, {}, True, Reference.UNKNOWN),  # the user's annotators do say it
    ],
)
def test_annotators_part_rests_on_what_is_known(rate, share, ratios, rare, reference):
    assert at_rate(rate, share, ratios, rare).references == (reference,)


def test_a_concept_that_annotators_hardly_ever_say_has_no_part_of_theirs():
    part = at_rate(0.3, 0.0, {}, True)
    assert not part.residuals.any()
    assert not part.fixed.any()


def test_one_share_of_annotators_is_their_difference_scaled():
    half, whole = at_rate(0.05, 0.2), at_rate(0.1, 0.2)
    assert 2 * half.residuals == pytest.approx(whole.residuals)
