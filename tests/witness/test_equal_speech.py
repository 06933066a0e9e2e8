"""LIC at equal style is what a plain script finds, on 2,000 real images."""

import pytest

from tests.witness import equal_speech
from tests.witness.cases import LIC, Case, means

pytestmark = [pytest.mark.slow, pytest.mark.real]

REPETITIONS = 5
POSITIONS = 3
LIMIT = "limit=2700"  # of which people describe some 2,000
CLOSE = 0.005  # half a point


@pytest.mark.parametrize("captioner", ["transformer", "sat"])
def test_the_witness_agrees(captioner, outputs):
    case = Case(captioner, ("dataset=lic", f"dataset.root={LIC}", LIMIT))
    witness = equal_speech.score(case.images(outputs), POSITIONS, REPETITIONS)
    ours = means(
        case.result(
            outputs, REPETITIONS, "metric=lic", "alignment=matched", "encoder.order=1",
            f"metric.positions={POSITIONS}",
        )
    )  # fmt: skip
    assert ours["score"].value == pytest.approx(witness, abs=CLOSE)
