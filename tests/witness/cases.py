"""Which captioners both are asked about, and what ``bias_pipeline`` says of them."""

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import Record
from bias_pipeline.corpus.split import seeds_of
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from tests.corpora import DATA
from tests.witness.agreement import Mean

LIC = DATA / "lic" / "bias_data"


@dataclass(frozen=True)
class Case:
    """A captioner of a data set."""

    captioner: str
    dataset: tuple[str, ...] = ("dataset=scenes",)
    positions: int = 2  # of human captions that attackers read; all are read alike
    objects: float = 0.08  # the share of images that must hold an object of DBAC's T→A, for few

    def images(self, outputs: Path) -> tuple[Record, ...]:
        """All images with their raw captions, labels and objects; skips where they are absent."""
        if self.dataset[0] == "dataset=lic" and not LIC.is_dir():
            pytest.skip(f"no real captions at {LIC}; set BIAS_PIPELINE_DATA to have this test run")
        return _images(self, outputs)

    def result(self, outputs: Path, n_seeds: int, *words: str, with_objects: bool = True) -> Result:
        """What ``bias_pipeline`` finds with further overrides, the metric among them."""
        cell = self.cell(outputs, *words)
        corpus = cell.corpus() if with_objects else replace(cell.corpus(), objects=None)
        return run_cell(corpus, cell.build("metric"), seeds_of(n_seeds), run_id="witness")

    def cell(self, outputs: Path, *words: str) -> compose.Cell:
        overrides = [*self.dataset, f"captioner={self.captioner}", f"paths.outputs={outputs}"]
        return compose.cell([*overrides, "stats.resamples=2", *words])


@cache
def _images(case: Case, outputs: Path) -> tuple[Record, ...]:
    return tuple(case.cell(outputs).corpus())


def means(result: Result) -> dict[str, Mean]:
    """Part to its mean over seeds."""
    return {
        row.part: Mean(
            row.value, row.seed_std / math.sqrt(row.n_seeds) if row.n_seeds else math.nan
        )
        for row in result.rows
    }


SCENES = [
    Case("amplifier", positions=5),
    *(Case(name) for name in ("faithful", "stereotyper", "dampener")),
]
REAL = [
    Case(name, ("dataset=lic", f"dataset.root={LIC}"), objects=0.12) for name in ("sat", "oscar")
]
CASES = [
    *(pytest.param(case, id=case.captioner) for case in SCENES),
    *(pytest.param(case, id=case.captioner, marks=pytest.mark.real) for case in REAL),
]
