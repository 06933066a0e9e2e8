"""Erasure and mean difference: what attackers still learn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from bias_pipeline.retrieval.debias.base import Debias, Examples, means_of
from bias_pipeline.retrieval.debias.methods import Erasure, MeanDifference
from tests.retrieval.debias.planted import planted_examples

BOTH = [Erasure(), MeanDifference()]


def right_on_others(learnt: Examples, others: Examples) -> int:
    attacker = LogisticRegression(max_iter=1000).fit(learnt.vectors, learnt.groups)
    return int((attacker.predict(others.vectors) == others.groups).sum())


def erase(how: Debias, strength: float = 2.0) -> tuple[Examples, Examples]:
    """Examples that were fitted to, and held-out ones."""
    learnt, others = (planted_examples(2000, strength, seed)[0] for seed in (0, 1))
    edit = how.fit(learnt)
    return tuple(replace(examples, vectors=edit(examples.vectors)) for examples in (learnt, others))


def test_after_erasure_no_linear_attacker_beats_chance_on_held_out_images():
    learnt, others = (planted_examples(2000, 2.0, seed)[0] for seed in (0, 1))
    assert right_on_others(learnt, others) > 0.9 * 2000  # the group was there to be learnt
    right = right_on_others(*erase(Erasure()))
    assert stats.binomtest(right, 2000, 0.5, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("how", BOTH, ids=lambda method: type(method).__name__)
def test_groups_have_one_mean_afterwards(how):
    one, other = means_of(erase(how)[0])
    assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("how", BOTH, ids=lambda method: type(method).__name__)
def test_three_groups_have_one_mean_afterwards(how):
    random = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 100)
    vectors = random.standard_normal((300, 6)) + 3 * np.eye(6)[groups]
    examples = Examples(vectors, groups, np.full(300, -1), ("a", "b", "c"), 0)
    means = means_of(replace(examples, vectors=how.fit(examples)(vectors)))
    assert means == pytest.approx(np.tile(means[0], (3, 1)), abs=1e-9)


def test_no_change_is_less_than_that_of_erasure():
    """Both leave groups one mean; of such edits erasure moves vectors least."""
    learnt, _ = planted_examples(2000, 2.0)
    stretched = replace(learnt, vectors=learnt.vectors * np.linspace(0.2, 3, 12))
    least, other = (
        np.square(how.fit(stretched)(stretched.vectors) - stretched.vectors).mean() for how in BOTH
    )
    assert least < other


def test_a_vector_that_is_constant_somewhere_is_no_obstacle():
    learnt, _ = planted_examples(500, 2.0)
    flat = learnt.vectors.copy()
    flat[:, 4] = 0.5
    one, other = means_of(
        replace(learnt, vectors=Erasure().fit(replace(learnt, vectors=flat))(flat))
    )
    assert one == pytest.approx(other, abs=1e-9)


def test_a_size_plays_no_part_in_what_the_run_is():
    assert Erasure.by_content({"k": 3, "side": "text"}) == {"k": None}
