"""DPA is what the witness finds with other splits and other wrong labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.witness import dpa
from tests.witness.agreement import Mean, agree, mean, odd_ones
from tests.witness.attackers import IntArray
from tests.witness.cases import CASES, Case, means

pytestmark = pytest.mark.slow

SPLITS = 12
LEAST = 0.04  # of images must hold a task
DIRECTIONS = ("a_to_t", "t_to_a")
SIDES = ("model", "human")


@dataclass(frozen=True)
class Compared:
    """A captioner, by both."""

    ours: Mapping[str, Mean]  # by part
    questions: Mapping[str, dpa.Question]  # by direction
    psi: Mapping[str, dpa.Psi]  # what the witness's attackers predict


@pytest.fixture(scope="module", params=CASES)
def comparison(request: pytest.FixtureRequest, outputs: Path) -> Compared:
    case: Case = request.param
    images = case.images(outputs)
    questions = {"a_to_t": dpa.a_to_t(images, LEAST), "t_to_a": dpa.t_to_a(images)}
    words = ("metric=dpa", "split=dbac", "metric.equalise=flip", f"metric.min_support={LEAST}")
    return Compared(
        means(case.result(outputs, SPLITS, *words)),
        questions,
        {name: dpa.predictability(question, SPLITS) for name, question in questions.items()},
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_witness_agrees(comparison, direction):
    ours, witness = comparison.ours[direction], mean(comparison.psi[direction].score())
    assert agree(ours, witness), f"{ours}, the witness {witness}"


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_witness_agrees_on_either_side(comparison, direction, side):
    accuracy = getattr(comparison.psi[direction], side)
    ours = comparison.ours[f"{direction}:quality:{side}"]
    witness = mean(np.mean(list(accuracy.values()), axis=0))
    assert agree(ours, witness), f"{ours}, the witness {witness}"


def test_the_witness_agrees_on_frequent_tasks(comparison):
    truth, psi = comparison.questions["a_to_t"].truth, comparison.psi["a_to_t"]
    frequent = sorted(truth, key=lambda task: -truth[task].sum())[:10]
    witness = {f"a_to_t:object:{task}": mean(psi.score(task)) for task in frequent}
    assert not odd_ones(comparison.ours, witness)


def only_where_tested(
    n_labels: int, n_wrong: int, test: IntArray, generator: np.random.Generator
) -> IntArray:
    """The mistake that this test is here for: wrong labels fall on tested images first."""
    rest = np.setdiff1d(np.arange(n_labels), test)
    return np.concatenate([generator.permutation(test), generator.permutation(rest)])[:n_wrong]


def test_wrong_labels_that_keep_to_tested_images_would_be_noticed(outputs):
    """``stereotyper`` is the one of ``scenes`` that names wrong groups."""
    question = dpa.t_to_a(Case("stereotyper").images(outputs))
    right, wrong = (
        mean(dpa.predictability(question, SPLITS, noise).score())
        for noise in (dpa.anywhere, only_where_tested)
    )
    assert not agree(wrong, right)
