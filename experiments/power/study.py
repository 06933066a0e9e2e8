"""How small a bias can a data set of a given size show?

Usage: python -m experiments.power.study [DATA [CPU_MINUTES]]

With DATA (the folder that holds lic/bias_data) trials are computed in one process, for so many
minutes of its CPU time (35), and appended to rows.csv as they end; a study that was stopped goes on
where it was, and a metric's trials of earlier versions are made anew. Without it, RESULTS.md,
docs/which_metric.md and the figures that the package ships are made from the rows that are there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.report.power import balanced_images
from bias_pipeline.report.verdict import verdict
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.run.compose import Cell
from experiments.power import designs, guide, tables
from experiments.power.designs import SCORED, Scoring
from experiments.study import is_of_today

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
DOCS = HERE.parent.parent / "docs" / "which_metric.md"
# Image counts, and in how many trials metrics that are quick and that are slow score them.
TRIALS = {250: (10, 3), 500: (10, 3), 1000: (10, 3), 2000: (10, 2), 5000: (3, 1), 8000: (2, 1)}
PLANTED = (0, 5, 10, 20)  # per cent
CPU_MINUTES = 35.0
COLUMNS = (
    "design", "metric", "alignment", "metric_version", "n_images", "balanced", "planted", "trial",
    "part", "unit", "value", "ci_low", "p", "doubt",
)  # fmt: skip
_KEY = ["design", "metric", "n_images", "planted", "trial"]


@dataclass(frozen=True)
class Trial:
    """A corpus and what scores it.

    Attributes:
        number: from which its images follow.
        n_images: how many.
        design: of :data:`~experiments.power.designs.SCORED`.
        planted: per cent.
    """

    number: int
    n_images: int
    design: str
    planted: int

    def scorings(self) -> list[Scoring]:
        """The metrics that score it."""
        few = self.number >= TRIALS[self.n_images][1]
        return [scoring for scoring in SCORED[self.design] if not (few and scoring.slow)]


def planned_trials() -> Iterator[Trial]:
    """All trials, a little of everything first."""
    for number in range(max(quick for quick, _ in TRIALS.values())):
        for n_images, (quick, _) in TRIALS.items():
            for design in SCORED if number < quick else ():
                yield from (Trial(number, n_images, design, planted) for planted in PLANTED)


def current_rows(path: Path = ROWS) -> pd.DataFrame:
    """The rows of today's versions, of which none where a study has not begun."""
    if not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    rows = pd.read_csv(path, keep_default_na=False, na_values=["nan"])
    of_today = map(is_of_today, rows["metric"], rows["metric_version"])
    return rows[list(of_today)]


def go_on(data: Path, minutes: float, path: Path = ROWS) -> None:
    """Compute trials until the CPU time is over, each appended as it ends."""
    rows = current_rows(path)
    rows.to_csv(path, index=False, na_rep="nan")
    done = set(rows[_KEY].itertuples(index=False, name=None))
    for trial in planned_trials():
        left = [
            scoring
            for scoring in trial.scorings()
            if (trial.design, scoring.metric, trial.n_images, trial.planted, trial.number)
            not in done
        ]
        if time.process_time() > 60 * minutes:
            return
        if left:
            lines = pd.DataFrame(_rows(data, trial, left), columns=COLUMNS)
            lines.to_csv(
                path, mode="a", index=False, header=False, na_rep="nan", float_format="%.4g"
            )


def _rows(data: Path, trial: Trial, scorings: list[Scoring]) -> Iterator[dict[str, object]]:
    corpus = designs.corpus(data, trial.design, trial.n_images, trial.planted, trial.number)
    sizes = [size for grouping in corpus.groupings.values() for size in grouping.sizes.values()]
    for scoring in scorings:
        for line in _judge(_score(scoring, corpus)):
            yield {
                "design": trial.design,
                "metric": scoring.metric,
                "alignment": scoring.alignment,
                "n_images": trial.n_images,
                "balanced": balanced_images(sizes),
                "planted": trial.planted,
                "trial": trial.number,
                **line,
            }


def _score(scoring: Scoring, corpus: Corpus) -> Result:
    cell = _cell(scoring)
    return run_cell(corpus, cell.build("metric"), cell.seeds, run_id=scoring.metric)


@cache
def _cell(scoring: Scoring) -> Cell:
    return compose.cell(scoring.words)


def _judge(result: Result) -> Iterator[dict[str, object]]:
    """What an audit of this metric alone would say of each part that it may conclude from."""
    version = result.rows[0].metric_version
    for finding in verdict([result]).findings:
        if finding.headline in result.manifest["metric"]["readings"]:
            yield {
                "metric_version": version,
                "part": finding.row.part,
                "unit": finding.row.unit,
                "value": finding.compared.value - finding.neutral,
                "ci_low": finding.compared.ci_low - finding.neutral,
                "p": finding.p_value,
                "doubt": finding.doubt,
            }


def main(data: str | None = None, minutes: str = str(CPU_MINUTES)) -> None:
    if data is not None:
        go_on(Path(data), float(minutes))
    tables.write(current_rows(), HERE / "RESULTS.md")
    DOCS.write_text(guide.page(DOCS.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
