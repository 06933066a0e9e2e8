"""The subspace of a group, against worked cases and planted directions."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import DataError
from bias_pipeline.retrieval.debias.base import Examples
from bias_pipeline.retrieval.debias.methods import (
    Projection,
    Subspace,
    centre_sets,
    match_pictures,
    principal_directions,
)
from tests.oracles import oracle
from tests.retrieval.debias.planted import NAMES, planted_examples


def worked_case(reading: str) -> dict:
    values: dict = oracle("retrieval_debias")["subspace"]
    return {**values, **values[reading]}


def pairs() -> tuple[Float64Array, np.ndarray]:
    vectors_by_group = worked_case("pair_mean_reading")
    vectors = np.concatenate([vectors_by_group["male"], vectors_by_group["female"]])
    return vectors, np.tile(np.arange(len(vectors_by_group["male"])), 2)


@pytest.mark.parametrize("k", [1, 2])
def test_components_and_what_is_left_are_those_of_the_worked_case(k):
    reference = worked_case("pair_mean_reading")
    directions = principal_directions(centre_sets(*pairs()), k)
    wanted = np.array(reference["abs_components"])[:k]
    assert abs(directions) == pytest.approx(wanted, abs=reference["tolerance_abs"])
    left = Projection(directions)(np.array([reference["h"]]))[0]
    assert left == pytest.approx(reference[f"h_debiased_k{k}"], abs=1e-5)


def test_read_literally_the_first_component_is_not_the_group():
    reference = worked_case("gender_set_mean_reading_LITERAL")
    vectors, _ = pairs()
    groups = np.repeat([0, 1], len(vectors) // 2)
    (principal_direction,) = principal_directions(centre_sets(vectors, groups), 1)
    assert abs(principal_direction @ reference["true_gender_axis"]) < 0.05


@pytest.mark.parametrize("pairing", ["random", "nearest"])
def test_a_planted_direction_is_found(pairing):
    examples, axis = planted_examples(2000, 3.0)
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


def test_random_sets_have_one_picture_of_each_group_each_once_and_depend_on_the_seed():
    examples, _ = planted_examples(101, 1.0)
    rows, sets = match_pictures(examples, "random")
    groups = examples.groups[rows][np.argsort(sets, kind="stable")].reshape(-1, 2)
    assert (np.sort(groups) == [0, 1]).all()
    assert len(set(rows.tolist())) == len(rows)
    assert (match_pictures(replace(examples, seed=1), "random")[0] != rows).any()


def test_a_group_without_pictures_is_refused():
    examples, _ = planted_examples(50, 1.0)
    with pytest.raises(DataError, match="no picture of group 'female'"):
        match_pictures(replace(examples, groups=np.zeros(50, np.int64)), "random")
