"""CHAIR and recall by hand; means, gaps and ratios against plain formulas."""

import math

import numpy as np
import pytest

from bias_pipeline.metrics.functional.invention import (
    Amount,
    NamedObjects,
    mean,
    mean_gap,
    ratio_of_sums,
)

# Four captions and three objects: a dog, a tie, a cup.
NAMED = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0]], float)
PRESENT = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]], float)
CAPTIONS = NamedObjects(NAMED, PRESENT)


def test_an_object_is_invented_where_it_is_named_and_absent():
    assert CAPTIONS.absent.tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert CAPTIONS.invents.tolist() == [1, 0, 1, 0]


def test_recall_is_the_share_of_objects_that_are_named_and_unknown_without_any():
    recall = CAPTIONS.recall
    assert recall[[0, 1, 3]].tolist() == [1, 0.5, 0]
    assert math.isnan(recall[2])


def test_chair_by_mention_is_a_ratio_of_sums():
    absent, named = CAPTIONS.absent.sum(axis=1), NAMED.sum(axis=1)
    assert ratio_of_sums(absent, named).value == 3 / 5
    assert math.isnan(ratio_of_sums(np.zeros(2), np.zeros(2)).value)


def test_the_error_of_a_ratio_is_that_of_resampled_images():
    random = np.random.default_rng(0)
    named = random.integers(1, 4, 400).astype(float)
    absent = np.minimum(named, random.integers(0, 2, 400))
    drawn = random.integers(0, 400, (2000, 400))
    resampled = absent[drawn].sum(axis=1) / named[drawn].sum(axis=1)
    assert ratio_of_sums(absent, named).error == pytest.approx(resampled.std(), rel=0.1)


def test_a_gap_is_that_of_means_with_the_error_of_both():
    values, members = np.array([1.0, 0, 1, 0, 0, 0]), np.array([1, 1, 0, 0, 0, 0], bool)
    gap = mean_gap(values, members)
    assert gap.value == 0.5 - 0.25
    errors = mean(values[members]).error, mean(values[~members]).error
    assert gap.error == pytest.approx(math.hypot(*errors))
    assert math.isnan(mean(np.empty(0)).value)


def test_an_interval_is_symmetric():
    assert Amount(1.0, 0.5).interval(2) == (0, 2)
