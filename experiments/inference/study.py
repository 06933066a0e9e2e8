"""How often do metrics call people biased, and how often do their intervals contain the truth?

Usage: python -m experiments.inference.study [DATA [MINUTES [WORKERS]]]

With DATA trials are computed for so many minutes (180, by two workers) and appended to rows.csv as
they end, the same trial of all metrics and sizes before the next; a stopped study resumes, and
trials of a metric's earlier versions are repeated. Without DATA the tables are made from the rows
that are there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from experiments.inference import tables, trials
from experiments.inference.designs import CAPTIONERS, PEOPLE, SAMPLES, SCENES
from experiments.inference.trials import COUNTED, TRAINED, Trial

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
COVERAGE = HERE / "COVERAGE.md"
SIZES = (100, 400, 800, 2000)
FURTHER = (50, 500, 5000, 8000)  # which show what is detected, and need few trials
OF_SAMPLES = (100, 500, 2000)
OF_ATTACKERS = (100, 400)
TRIALS = 400
FEWER = 10  # trials of the cheap ones for each of the others
MINUTES, WORKERS = 180.0, 2
COLUMNS = (
    "design", "metric", "metric_version", "captioner", "n_images", "trial", "part", "value",
    "ci_low", "ci_high", "truth", "p_single", "difference", "p_paired", "smallest_seen",
)  # fmt: skip


def planned_trials() -> Iterator[Trial]:
    """All trials; tests of counting metrics, which take seconds, most often."""
    for trial in range(TRIALS):
        for n_images, design in product(SIZES, (PEOPLE, SCENES)):
            yield Trial(trial, n_images, design, metrics=COUNTED)
        if trial % FEWER == FEWER - 1:
            yield from _fewer(trial // FEWER)


def _fewer(trial: int) -> Iterator[Trial]:
    """Further sizes, real captioners and attackers, one trial of each."""
    for n_images in FURTHER:
        yield Trial(trial, n_images, PEOPLE, metrics=COUNTED)
    for n_images, captioner in product(OF_SAMPLES, CAPTIONERS):
        # Other attackers learn more from more images, so they have no true value.
        yield Trial(trial, n_images, SAMPLES, captioner, (*COUNTED, "dpa"))
    for n_images, design in product(OF_ATTACKERS, (PEOPLE, SCENES)):
        yield Trial(trial, n_images, design, metrics=TRAINED)


def current_rows(path: Path = ROWS) -> pd.DataFrame:
    """The rows of the current versions, metric by metric; none before the first trial."""
    if not path.is_file():
        return pd.DataFrame(columns=COLUMNS)
    rows = pd.read_csv(path, keep_default_na=False, na_values=["nan"])
    today = {metric: trials.version(metric) for metric in (*COUNTED, *TRAINED)}
    rows = rows[rows["metric_version"] == rows["metric"].map(today)]
    return rows.sort_values("metric", key=lambda m: m.map(list(today).index), kind="stable")


def missing_trials(rows: pd.DataFrame) -> Iterator[Trial]:
    """Planned trials without rows."""
    names = ["trial", "n_images", "design", "captioner", "metric"]
    done = set(rows[names].itertuples(index=False, name=None))
    for trial in planned_trials():
        key = (trial.trial, trial.n_images, trial.design, trial.captioner)
        left = tuple(metric for metric in trial.metrics if (*key, metric) not in done)
        if left:
            yield replace(trial, metrics=left)


def go_on(data: Path, minutes: float, workers: int, path: Path = ROWS) -> None:
    """Compute trials until the time is over, each appended as it ends."""
    rows = current_rows(path)
    rows.to_csv(path, index=False, na_rep="nan")
    ends = time.monotonic() + 60 * minutes
    left = missing_trials(rows)
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool, path.open("a") as file:
        while time.monotonic() < ends and (next_ones := list(islice(left, 2 * workers))):
            for done in as_completed(map(partial(pool.submit, trials.rows, data), next_ones)):
                lines = pd.DataFrame(done.result(), columns=COLUMNS)
                lines.to_csv(file, index=False, header=False, na_rep="nan", float_format="%.4g")
                file.flush()


def main(data: str | None = None, minutes: str = str(MINUTES), workers: str = str(WORKERS)) -> None:
    if data is not None:
        go_on(Path(data), float(minutes), int(workers))
    rows = current_rows()
    (HERE / "RESULTS.md").write_text(tables.page(rows))
    COVERAGE.write_text(tables.coverage_page(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
