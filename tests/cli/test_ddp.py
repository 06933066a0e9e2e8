"""Several processes train each attacker, from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.attack import neural
from tests.cli.commands import results

# Without dropout, of which each process draws its own.
CELL = (
    "metric=lic",
    "encoder=lstm",
    "attacker.hidden_dim=8",
    "attacker.dropout=0",
    "head.dropout=0",
    "dataset.n_images=300",
    "seeds=1",
    "metric.positions=1",
    "stats.resamples=20",
    "trainer.max_epochs=2",
    "logger=csv",
)
TWO = ("trainer=ddp", "trainer.devices=2")


@pytest.fixture(scope="module", autouse=True)
def _processes() -> Iterator[None]:
    yield
    neural._stop_workers()


def manifest(path: Path) -> dict[str, Any]:
    manifest_content: dict[str, Any] = json.loads(path.read_text())["manifest"]
    return manifest_content


@pytest.mark.slow
def test_a_sweep_has_a_folder_for_each_job_and_no_other(ok, tmp_path):
    """Lightning's own way would run the whole sweep again in the second process."""
    ok(*CELL, *TWO, "captioner=faithful,terse")
    assert [manifest(path)["training"]["world_size"] for path in results(tmp_path)] == [2, 2]
    assert len(list(tmp_path.glob("outputs/.hydra_jobs/*"))) == 1


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("trainer.devices=auto", "trainer.devices='auto' must be a number of devices"),
        ("+trainer.num_nodes=2", "spread seeds over jobs instead"),
        ("probe.processes=2", "exclude each other"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(ends, word, message):
    assert message in ends(2, *CELL, *TWO, word)
