"""Neurons overwritten: the worked case, and what overwriting cannot change."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.array_types import Float64Array
from bias_pipeline.retrieval.debias.base import Debiased, Examples, means_of
from bias_pipeline.retrieval.debias.methods import (
    MeanNeuron,
    NeuronDebias,
    ZeroNeuron,
    most_relevant,
    relevance,
    reversed_neurons,
)
from bias_pipeline.retrieval.formulas import top_ranks
from tests.oracles import oracle
from tests.retrieval.debias.planted import NAMES, planted_examples


def case() -> tuple[dict[str, Any], Examples]:
    neurons = oracle("retrieval_debias")["neurons"]
    sides = [np.array(neurons[name]) for name in ("R_male", "R_female")]
    groups = np.repeat([0, 1], [len(side) for side in sides])
    return neurons, Examples(np.concatenate(sides), groups, np.full(len(groups), -1), NAMES, 0)


def test_relevance_and_ranking_are_those_of_the_worked_case_and_nan_comes_last():
    worked, examples = case()
    wanted = [np.nan if item is None else item for item in worked["relevance_ddof0"]]
    scores = relevance(examples)
    assert scores == pytest.approx(wanted, abs=worked["tolerance_abs"], nan_ok=True)
    assert most_relevant(scores, 4).tolist() == [*worked["ranking_desc_excluding_nan"], 3]


@pytest.mark.parametrize(
    ("kind", "key"), [(ZeroNeuron, "zero_neuron_top1"), (MeanNeuron, "mean_neuron_top1")]
)
def test_overwriting_is_that_of_the_worked_case(kind, key):
    message, examples = case()
    (result,) = kind(k=1).fit(examples)(np.array([message["h"]]))
    assert result == pytest.approx(message[key], abs=message["tolerance_abs"])


def test_a_neuron_that_never_varies_within_groups_comes_first():
    vectors = np.array([[0.0, 1.0], [3.0, 1.0], [5.0, 2.0], [9.0, 2.0]])
    examples = Examples(vectors, np.array([0, 0, 1, 1]), np.full(4, -1), NAMES, 0)
    assert most_relevant(relevance(examples), 1).tolist() == [1]


def test_of_three_groups_the_two_that_differ_most_count():
    random = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 200)
    vectors = random.standard_normal((600, 4))
    vectors[groups == 2, 3] += 4
    examples = Examples(vectors, groups, np.full(600, -1), ("a", "b", "c"), 0)
    assert most_relevant(relevance(examples), 1).tolist() == [3]


@dataclass(frozen=True)
class Given:
    """Items are vectors already."""

    spec: Any = None

    def embed(self, items: Any) -> np.ndarray:
        return np.asarray(items, np.float32)


def ranks(kind: type[NeuronDebias], k: int, seed: int, *, renormalise: bool) -> Float64Array:
    examples, _ = planted_examples(60, 1.0, seed)
    edit = kind(k=k).fit(examples)
    pictures = Debiased(Given(), edit, renormalise).embed(examples.vectors)
    queries = np.random.default_rng(seed).standard_normal((5, 12)).astype(np.float32)
    return top_ranks(queries, pictures, 20)


@given(st.integers(1, 11), st.integers(0, 1000))
def test_what_pictures_are_overwritten_by_changes_no_ranking(k, seed):
    zero, mean = (ranks(item, k, seed, renormalise=False) for item in (ZeroNeuron, MeanNeuron))
    assert (zero == mean).mean() > 0.99  # but for rounding between almost equal ones


def test_with_vectors_of_length_1_again_it_may():
    zero, mean = (ranks(item, 6, 0, renormalise=True) for item in (ZeroNeuron, MeanNeuron))
    assert (zero != mean).any()


def test_neurons_reversed_twice_are_as_they_were_and_all_of_them_swap_the_groups():
    examples, _ = planted_examples(200, 2.0)
    means, neurons = means_of(examples), np.array([3, 5])
    once = reversed_neurons(examples, means, neurons)
    other = replace(examples, vectors=once, groups=1 - examples.groups)
    assert reversed_neurons(other, means, neurons) == pytest.approx(examples.vectors)
    changed = replace(examples, vectors=reversed_neurons(examples, means, np.arange(12)))
    assert means_of(changed) == pytest.approx(means[::-1])
