"""Directions from other images than those counted: the formulas, and what they are for."""

from dataclasses import fields

import numpy as np
import pytest

from bias_pipeline.metrics.functional import crossfit
from bias_pipeline.metrics.functional.amplification import (
    DENOMINATORS,
    PREDICTIONS,
    ba_directional,
    ba_mals,
    directional_pairs,
    mals_tasks,
)
from bias_pipeline.metrics.functional.counts import Counts, nanmean

RANDOM = np.random.default_rng(0)


def stack_folds(*folds: Counts) -> Counts:
    """Counts of folds, as the functions take them."""
    names = [field.name for field in fields(Counts)]
    return Counts(**{name: np.stack([getattr(one, name) for one in folds]) for name in names})


def images(n: int, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Groups and tasks by label and by caption, all independent of each other."""
    a, a_hat = (np.eye(2)[random.integers(0, 2, n)] for _ in range(2))
    t, t_hat = (random.integers(0, 2, (n, 3)) for _ in range(2))
    return a, t, a_hat, t_hat


def halves(n: int, random: np.random.Generator) -> Counts:
    columns = images(n, random)
    return stack_folds(*(Counts.from_rows(*(column[k::2] for column in columns)) for k in range(2)))


@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_where_folds_are_alike_t_to_a_is_the_published(denominator):
    one = Counts.from_rows(*images(50, RANDOM))
    pairs = crossfit.t_to_a_pairs(stack_folds(one, one), denominator=denominator)
    np.testing.assert_allclose(pairs, directional_pairs(one, "t_to_a", denominator=denominator))


@pytest.mark.parametrize("predictions", PREDICTIONS)
def test_where_folds_are_alike_mals_is_the_published(predictions):
    one = Counts.from_rows(*images(50, RANDOM))
    result = crossfit.mals_tasks_of_folds(stack_folds(one, one), predictions=predictions)
    np.testing.assert_allclose(result, mals_tasks(one, predictions=predictions))


def test_a_fold_is_counted_in_the_direction_of_the_others():
    """Men with the task in one fold, women in the other; captions name nobody."""
    men, women = (np.eye(2)[[k, k, 1 - k]] for k in range(2))
    task, nobody = np.array([[1], [1], [0]]), np.zeros((3, 2))
    folds = stack_folds(*(Counts.from_rows(item, task, nobody, task) for item in (men, women)))
    # Each group loses half of the task's images, where the other fold leans away from it.
    assert crossfit.t_to_a_pairs(folds).tolist() == [[0.5], [0.5]]
    assert directional_pairs(crossfit.sum_folds(folds), "t_to_a").tolist() == [[0.0], [0.0]]


def test_a_task_that_is_absent_stays_unknown():
    a, _, a_hat, t_hat = images(20, RANDOM)
    folds = stack_folds(*(Counts.from_rows(a, np.zeros((20, 3)), a_hat, t_hat) for _ in range(2)))
    assert np.isnan(crossfit.t_to_a_pairs(folds)).all()
    assert np.isnan(crossfit.mals_tasks_of_folds(folds)).all()


def test_labels_that_are_noise_are_no_mitigation():
    """Captions lack the noise by which labels lean: the published numbers take that for a loss."""
    folds = [halves(40, np.random.default_rng(seed)) for seed in range(300)]
    t_to_a = [nanmean(crossfit.t_to_a_pairs(fold, denominator="named"), 2) for fold in folds]
    of_mals = [crossfit.mean_of_tasks(crossfit.mals_tasks_of_folds(fold), "drop") for fold in folds]
    published = [
        ba_directional(crossfit.sum_folds(fold), "t_to_a", denominator="named") for fold in folds
    ]
    assert np.mean(published) < -0.05
    assert np.mean([ba_mals(crossfit.sum_folds(fold)) for fold in folds]) < -0.05
    assert abs(np.mean(t_to_a)) < 0.01
    assert abs(np.mean(of_mals)) < 0.01
