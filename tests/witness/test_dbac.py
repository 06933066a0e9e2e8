"""DBAC with each side's own priors is what the witness finds, pair by pair and over pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.results.rows import Result
from tests.witness import dbac
from tests.witness.agreement import Mean, agree, mean, odd_ones
from tests.witness.attackers import Attacked, FloatArray, IntArray
from tests.witness.cases import CASES, Case, means
from tests.witness.lic import group_of

pytestmark = pytest.mark.slow

AGGREGATE = {"a_to_t": "weighted", "t_to_a": "per_pair"}
RARE = {"a_to_t": "merge", "t_to_a": "drop"}
A_TO_T_LEAST = 0.005
A_TO_T_SPLITS, T_TO_A_SPLITS = 8, 5
NO_PAIRS = ("quality", "prior", "mentions", "learning")
SOLVERS = 5e-3  # of a probability: how far from the optimum either solver stops


@dataclass(frozen=True)
class Compared:
    """One direction of one captioner, by both."""

    name: str  # of the direction
    result: Result  # ours
    direction: dbac.Direction  # the witness's
    scores: Sequence[Mapping[dbac.Pair, float]]  # the witness's pairs, split by split

    @cached_property
    def ours(self) -> Mapping[str, Mean]:
        """Part to our mean."""
        return means(self.result)

    def frequent(self) -> list[dbac.Pair]:
        """The ten pairs that most of human captions hold."""
        weights = self.direction.weights()
        return sorted(self.direction.pairs, key=lambda pair: -weights[pair])[:10]


def settings(name: str, least: float, positions: int) -> tuple[str, ...]:
    reading = (f"metric.aggregate={AGGREGATE[name]}", f"metric.rare={RARE[name]}")
    overrides = (f"metric.min_support={least}", f"metric.positions={positions}")
    return ("metric=dbac", "split=dbac", "metric.prior=counts", *reading, *overrides)


def a_to_t(case: Case, outputs: Path) -> Compared:
    direction = dbac.a_to_t(case.images(outputs), A_TO_T_LEAST, RARE["a_to_t"], case.positions)
    scores = [direction.scores(one) for one in dbac.group_qualities(direction, A_TO_T_SPLITS)]
    words = settings("a_to_t", A_TO_T_LEAST, case.positions)
    # Without objects in the images there is no T→A, which would cost most of the time.
    result = case.result(outputs, A_TO_T_SPLITS, *words, with_objects=False)
    return Compared("a_to_t", result, direction, scores)


def t_to_a(case: Case, outputs: Path) -> Compared:
    direction = dbac.t_to_a(case.images(outputs), case.objects, RARE["t_to_a"], case.positions)
    scores = [direction.scores(one) for one in dbac.task_qualities(direction, T_TO_A_SPLITS)]
    words = settings("t_to_a", case.objects, case.positions)
    result = case.result(outputs, T_TO_A_SPLITS, *words)
    return Compared("t_to_a", result, direction, scores)


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    case_given: Case = request.param
    return case_given


@pytest.fixture(scope="module", params=[a_to_t, t_to_a], ids=lambda make: make.__name__)
def comparison(request: pytest.FixtureRequest, case: Case, outputs: Path) -> Compared:
    made: Compared = request.param(case, outputs)
    return made


def test_the_same_pairs_are_scored(comparison):
    parts = [part.split(":") for part in comparison.ours if part.startswith(f"{comparison.name}:")]
    pairs = {tuple(part[1:]) for part in parts if len(part) == 3 and part[1] not in NO_PAIRS}
    assert pairs == set(comparison.direction.pairs)


def test_the_witness_agrees(comparison):
    weights = comparison.direction.weights() if AGGREGATE[comparison.name] == "weighted" else None
    ours = comparison.ours[comparison.name]
    witness = mean([dbac.mean_of_pairs(one, weights) for one in comparison.scores])
    assert agree(ours, witness), f"{ours}, the witness {witness}"


def test_the_witness_agrees_on_frequent_pairs(comparison):
    witness = {
        f"{comparison.name}:{g}:{o}": mean([one.get((g, o), np.nan) for one in comparison.scores])
        for g, o in comparison.frequent()
    }
    assert not odd_ones(comparison.ours, witness)


def test_attackers_of_the_same_images_predict_the_same(comparison):
    """Our split, so that nothing is left to chance: words, masks, vocabulary, penalty."""
    rows = {image.id: row for row, image in enumerate(comparison.direction.images)}
    assert comparison.result.predictions
    for predictions in comparison.result.predictions:
        test = np.array([rows[comparison.result.ids[image]] for image in predictions.images[0]])
        probs = predictions.probs[0] if comparison.name == "t_to_a" else predictions.probs[0][:, 1:]
        np.testing.assert_allclose(
            predict(comparison.direction, predictions, test), probs, atol=SOLVERS
        )


def predict(item: dbac.Direction, predictions: Predictions, test: IntArray) -> FloatArray:
    """(M, T) what the witness's attackers predict, which learn from all images but the test's."""
    direction, side, position = predictions.name.split(":")
    attacked = Attacked(item.sides[side].words[int(position)])
    train = np.setdiff1d(np.arange(len(item.images)), test)
    labels = [group_of(item.images)]
    if direction == "t_to_a":
        labels = [
            np.array([task in tasks for tasks in item.given], int) for task in predictions.classes
        ]
    return np.stack([attacked.predict(one, train, test) for one in labels], axis=1)
