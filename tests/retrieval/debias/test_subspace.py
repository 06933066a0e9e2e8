"""The subspace of a group, against worked cases and planted directions."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.retrieval.debias.base import Examples
from bias_pipeline.retrieval.debias.methods import (
    Projection,
    Subspace,
    centred,
    matched,
    principal_directions,
)
from tests.oracles import oracle
from tests.retrieval.debias.planted import NAMES, planted


def expected(reading: str) -> dict:
    values: dict = oracle("retrieval_debias")["subspace"]
    return {**values, **values[reading]}


def pairs() -> tuple[Float64Array, np.ndarray]:
    vectors_by_group = expected("pair_mean_reading")
    vectors = np.concatenate([vectors_by_group["male"], vectors_by_group["female"]])
    return vectors, np.tile(np.arange(len(vectors_by_group["male"])), 2)


@pytest.mark.parametrize("k", [1, 2])
def test_components_are_those_of_the_worked_case(k):
    reference = expected("pair_mean_reading")
    result = principal_directions(centred(*pairs()), k)
    wanted = np.array(reference["abs_components"])[:k]
    assert abs(result) == pytest.approx(wanted, abs=reference["tolerance_abs"])


@pytest.mark.parametrize("k", [1, 2])
def test_what_is_left_is_that_of_the_worked_case(k):
    reference = expected("pair_mean_reading")
    edit = Projection(principal_directions(centred(*pairs()), k))
    result = edit(np.array([reference["h"]]))[0]
    assert result == pytest.approx(reference[f"h_debiased_k{k}"], abs=1e-5)


def test_read_literally_the_first_component_is_not_the_group():
    reference = expected("gender_set_mean_reading_LITERAL")
    vectors, _ = pairs()
    groups = np.repeat([0, 1], len(vectors) // 2)
    (principal_direction,) = principal_directions(centred(vectors, groups), 1)
    assert abs(principal_direction @ reference["true_gender_axis"]) < 0.05


def test_a_projection_is_idempotent():
    edit = Subspace(k=3).fit(planted(200, 1.0)[0])
    once = edit(np.random.default_rng(1).standard_normal((20, 12)))
    assert edit(once) == pytest.approx(once, abs=1e-12)


@pytest.mark.parametrize("pairing", ["random", "nearest"])
def test_a_planted_direction_is_found(pairing):
    examples, axis = planted(2000, 3.0)
    (direction,) = Subspace(k=1, pairing=pairing).fit(examples).directions
    assert abs(direction @ axis) > 0.95


def test_texts_in_sets_need_no_pairing():
    random = np.random.default_rng(0)
    axis = np.eye(12)[4]
    topics = np.repeat(random.standard_normal((200, 12)), 2, axis=0)
    groups = np.tile([0, 1], 200)
    vectors = topics + 0.1 * np.where(groups, 1, -1)[:, None] * axis  # topics differ far more
    texts = Examples(vectors, groups, np.arange(400) // 2, NAMES, 0)
    (direction,) = Subspace(k=1).fit(texts).directions
    assert abs(direction @ axis) == pytest.approx(1)


def test_pictures_come_in_sets_of_one_of_each_group():
    examples, _ = planted(101, 1.0)
    rows, sets = matched(examples, "random")
    groups = examples.groups[rows][np.argsort(sets, kind="stable")].reshape(-1, 2)
    assert (np.sort(groups) == [0, 1]).all()


def test_no_picture_is_in_two_random_sets():
    rows, _ = matched(planted(101, 1.0)[0], "random")
    assert len(set(rows.tolist())) == len(rows)


def test_another_seed_draws_other_sets():
    examples, _ = planted(101, 1.0)
    first, second = (matched(replace(examples, seed=seed), "random")[0] for seed in (0, 1))
    assert (first != second).any()


def test_a_group_without_pictures_is_refused():
    examples, _ = planted(50, 1.0)
    with pytest.raises(DataError, match="no picture of group 'female'"):
        matched(replace(examples, groups=np.zeros(50, np.int64)), "random")


def test_more_directions_than_numbers_are_refused():
    with pytest.raises(UsageError, match=r"debias\.k=12"):
        Subspace(k=12).fit(planted(50, 1.0)[0])
