"""Attackers of vectors: what is planted is found, what is not is not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from bias_pipeline.array_types import Float32Array
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.retrieval.side_effects import (
    Attacked,
    attacked_texts,
    attacker_parts,
)
from bias_pipeline.stats.bootstrap import Bootstrap

N = 800
BOTH = ("linear", "kernel")


KEYS = hash_ids(map(str, range(N)))
EACH_ONCE = (N, 1.0)


def attack(kind: str, seed: int = 0, n_groups: int = 2) -> Attacked:
    random = np.random.default_rng(seed)
    groups = random.integers(0, n_groups, N)
    vectors = random.standard_normal((N, 12))
    if kind == "mean":
        vectors[:, 0] += 2.0 * groups
    if kind == "spread":
        vectors[:, :4] *= 1.0 + 2.0 * groups[:, None]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Attacked.attack(vectors.astype(np.float32), np.arange(N), groups, KEYS, seed)


def accuracies(attacked: Attacked) -> dict[str, float]:
    arrays = attacked.accuracies(np.ones((1, N)), np.arange(N))
    return {name: float(values[0]) for name, values in arrays.items()}


@pytest.mark.parametrize(
    ("planted", "name", "low", "high"),
    [
        ("mean", "linear", 0.75, 1),
        ("mean", "kernel", 0.75, 1),
        ("spread", "linear", 0, 0.58),  # only the one that is not linear finds it
        ("spread", "kernel", 0.75, 1),
    ],
)
def test_what_is_planted_is_found(planted, name, low, high):
    assert low < accuracies(attack(planted))[name] < high


@pytest.mark.parametrize("n_groups", [2, 5])
def test_chance_lies_in_the_interval_where_there_is_nothing(n_groups):
    seeds = [attack("nothing", seed, n_groups) for seed in range(5)]
    for name, part in attacker_parts(seeds, KEYS, Bootstrap(200), EACH_ONCE).items():
        assert part.ci_low < 1 / n_groups < part.ci_high, name


def test_what_is_there_is_told_from_chance_and_a_seed_gives_the_same_answers():
    one, other = (attack("mean") for _ in range(2))
    assert all((one.right[name] == other.right[name]).all() for name in BOTH)
    result = attacker_parts(
        [attack("mean", seed) for seed in range(3)], KEYS, Bootstrap(200), EACH_ONCE
    )
    assert {str(name) for name in result} == {"attacker:linear", "attacker:kernel"}
    assert all(part.p_value < 1e-3 for part in result.values())


def test_the_larger_group_does_not_help():
    """Who always says the larger group is right half of the time, each group with equal weight."""
    groups = (np.arange(N) % 10 == 0).astype(int)
    vectors = np.random.default_rng(0).standard_normal((N, 4)).astype(np.float32)
    guesses = Attacked.attack(vectors, np.arange(N), groups, KEYS, 0)
    assert all(0.35 < value < 0.65 for value in accuracies(guesses).values())


class Words:
    """Texts by their first letter, and noise."""

    spec: ClassVar[dict[str, object]] = {}

    def embed(self, texts: Sequence[str], /) -> Float32Array:
        random = np.random.default_rng(0)
        vectors = random.standard_normal((len(texts), 8))
        vectors[:, 0] += [3.0 * text.startswith("a") for text in texts]
        return vectors.astype(np.float32)


def test_of_sentences_what_tells_the_group_is_found_and_those_of_one_set_are_learnt_from_together():
    """Else who learns "a man" and is asked of "a woman" need only say the other group."""
    texts = attacked_texts(Words(), [(f"a{n}", f"b{n}") for n in range(100)], 0)
    assert texts.rows.tolist() == [n for n in range(100) for _ in range(2)]
    assert texts.accuracies(np.ones((1, 100)), np.arange(100))["linear"][0] > 0.85


def test_guesses_of_folds_count_by_their_images():
    folds = [
        Attacked(np.arange(n), np.arange(n) % 2, {"linear": np.full(n, right)})
        for n, right in ((30, True), (10, False))
    ]
    folds[1] = replace(folds[1], rows=folds[1].rows + 30)
    joined = Attacked.join_folds(folds)
    assert joined.accuracies(np.ones((1, 40)), np.arange(40))["linear"][0] == 30 / 40
