"""What holds of every debiasing: a second edit changes nothing, and what cannot be is refused."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.retrieval.debias.base import Debias
from bias_pipeline.retrieval.debias.methods import (
    ClipClip,
    Erasure,
    MeanDifference,
    MeanNeuron,
    Subspace,
    ZeroNeuron,
)
from tests.retrieval.debias.planted import NAMES, SIZE, planted_examples

EDITS: list[Debias] = [
    *(Subspace(k=3), ZeroNeuron(k=3), MeanNeuron(k=3), ClipClip(k=3)),
    *(Erasure(), MeanDifference()),
]


@pytest.mark.parametrize("how", EDITS, ids=repr)
def test_a_second_edit_changes_nothing_more(how):
    edit = how.fit(planted_examples(500, 2.0)[0])
    once = edit(np.random.default_rng(1).standard_normal((20, SIZE)))
    assert edit(once) == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize("kind", [Subspace, ZeroNeuron, ClipClip])
def test_a_size_of_all_dimensions_is_refused(kind):
    with pytest.raises(UsageError, match=r"debias\.k=12"):
        kind(k=SIZE).fit(planted_examples(60, 1.0)[0])


@pytest.mark.parametrize("how", EDITS[1:], ids=repr)
def test_a_group_without_examples_is_refused(how):
    examples, _ = planted_examples(60, 1.0)
    with pytest.raises(DataError, match="no example of group 'other'"):
        how.fit(replace(examples, names=(*NAMES, "other")))
