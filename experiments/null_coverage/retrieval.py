"""The same null for retrieval: rankings that ignore groups.

Usage: python -m experiments.null_coverage.retrieval [TRIALS]

With TRIALS everything is computed and retrieval.csv is written; without it, the table is made anew
from the retrieval.csv that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.compare import holm
from experiments.null_coverage.study import (
    COMMON,
    HERE,
    SEEDS,
    coverage_table,
    shuffle_groups,
    trial_rows,
)
from experiments.study import markdown, write_page

ROWS, PAGE = HERE / "retrieval.csv", HERE / "RETRIEVAL.md"
NAME = "retrieval_fairness"
CELL = (f"metric={NAME}", *COMMON, "metric.k=50", "metric.recall=[]")
# Each number, and its value for a ranker that ignores groups.
AGAINST = {
    "score": "null",
    "skew:max": "null:skew:max",
    "skew:min": "null:skew:min",
    "skew:bias": "null:skew:bias",
    "skew:kl": "null:skew:kl",
    "skew:ndkl": "null:skew:ndkl",
}
ATTACKERS = ("attacker:linear", "attacker:kernel")
CHANCE = 0.5
LEVELS = (0.05, 0.001)


def run(trials: int, scratch: str) -> Iterator[dict[str, object]]:
    """One line per trial and part; new images and shuffled groups in every trial."""
    for trial in range(trials):
        cell = compose.cell([*CELL, f"dataset.seed={1 + trial}", f"paths.outputs={scratch}"])
        metric, corpus = cell.build("metric"), shuffle_groups(cell.corpus(), trial)
        score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
        for part, estimate in less_null(score).items():
            keys = ("value", "ci_low", "ci_high", "p_value")
            line = {"trial": trial, "metric": NAME, "metric_version": metric.info.version}
            yield {**line, "part": part, **{key: getattr(estimate, key) for key in keys}}
        for part, share in alarms(score).items():
            line = {"trial": trial, "metric": NAME, "metric_version": metric.info.version}
            yield {**line, "part": part, "value": share}
        print(f"{trial + 1} of {trials}", flush=True)


def alarms(score: Score) -> dict[str, float]:
    """How often single queries, which are fair, are called unfair."""
    p_values = [part.p_value for name, part in score.parts.items() if name.startswith("concept:")]
    shares = {
        f"queries with p < {level:g}": float(np.mean([p < level for p in p_values]))
        for level in LEVELS
    }
    return {**shares, "runs with a Holm p < 0.05": float(min(holm(p_values)) < LEVELS[0])}


def less_null(score: Score) -> dict[str, Estimate]:
    """Every number minus its null value, with its p."""
    nulls = {part: score.parts[null].value for part, null in AGAINST.items()}
    nulls |= dict.fromkeys(ATTACKERS, CHANCE)
    return {part: _move(score.parts[part], null) for part, null in nulls.items()}


def _move(estimate: Estimate, by: float) -> Estimate:
    ends = {key: getattr(estimate, key) - by for key in ("value", "ci_low", "ci_high")}
    return replace(estimate, **ends)


def write(rows: pd.DataFrame) -> None:
    """Write the tables made of the rows."""
    shares = rows["ci_low"].isna()
    summary = rows[shares].groupby("part", sort=False)["value"].agg(["mean", "min", "max"])
    tables = {
        "Each number minus that of a ranker that ignores groups; attackers minus 50 %": markdown(
            coverage_table(rows[~shares])
        ),
        "False alarms (per cent)": markdown(100 * summary),
    }
    write_page(PAGE, "Results of retrieval fairness", __file__, tables)


def main(trials: str | None = None) -> None:
    write(trial_rows(run, ROWS, trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
