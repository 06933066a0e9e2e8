"""LIC and Leakage are what the witness finds with other splits."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.witness import lic
from tests.witness.agreement import Mean, agree, mean
from tests.witness.cases import CASES, Case, means

pytestmark = pytest.mark.slow

SPLITS = 10
METRICS = ("lic", "leakage")
PARTS = ("model", "model:paired", "human:paired", "score")

Means = Mapping[str, Mapping[str, Mean]]  # metric to part


@pytest.fixture(scope="module", params=CASES)
def comparison(request: pytest.FixtureRequest, outputs: Path) -> tuple[Means, Means]:
    """Ours and the witness's."""
    case: Case = request.param
    witness = witness_means(case, outputs)
    words = (f"metric.positions={case.positions}", "split=lic", "scoring.average=captions")
    return {
        name: means(case.result(outputs, SPLITS, f"metric={name}", *words)) for name in METRICS
    }, witness


def witness_means(case: Case, outputs: Path) -> Means:
    images = case.images(outputs)
    alone, both = lic.model_side(images, SPLITS), lic.sides(images, SPLITS, case.positions)
    means = {}
    for name in METRICS:
        model, human = (getattr(both[side], name) for side in ("model", "human"))
        parts = (getattr(alone, name), model, human, model - human)
        means[name] = dict(zip(PARTS, map(mean, parts), strict=True))
    return means


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("part", PARTS)
def test_the_witness_agrees(comparison, metric, part):
    ours, witness = (item[metric][part] for item in comparison)
    assert agree(ours, witness), f"{ours}, the witness {witness}"
