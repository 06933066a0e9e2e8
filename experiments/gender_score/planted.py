"""How planted habits change the Gender Score, with real models.

Usage: python -m experiments.gender_score.planted [CACHE]

With CACHE, a folder of scored texts, everything is computed and planted_rows.csv is written;
without it, the table is made from that. The card of the metric has the same results, and a test
compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bias_pipeline.metrics.base import Metric
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.studies.behaviour import (
    BEHAVIOURS,
    Behaviour,
    behaviour_corpus,
    behaviour_verdict,
    headlines,
)
from experiments.study import cell, markdown, rows_at, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "planted_rows.csv", HERE / "PLANTED.md"
METRIC = "gender_score"
SEEDS = (0, 12, 456, 789)
SIDES = ("before", "planted")


def run(cache: Path) -> pd.DataFrame:
    """One line per behaviour: the score before and with the habit, and whether it changed."""
    metric = compose.cell([f"metric={METRIC}", f"paths.cache={cache}"]).build("metric")
    habits = {
        name: behaviour
        for name, behaviour in BEHAVIOURS.items()
        if behaviour.images == metric.info.images
    }
    return pd.DataFrame([_line(metric, name, behaviour) for name, behaviour in habits.items()])


def _line(metric: Metric, name: str, behaviour: Behaviour) -> dict[str, object]:
    corpora = (behaviour.before, (behaviour.planted, behaviour.people))
    estimates = [headlines(metric, behaviour_corpus(*it), SEEDS)["score"] for it in corpora]
    ends = dict(_ends(estimates))
    return {
        "behaviour": name,
        **ends,
        "verdict": behaviour_verdict(*estimates),
        "version": metric.info.version,
    }


def _ends(estimates: list[Estimate]) -> Iterator[tuple[str, float]]:
    for side, estimate in zip(SIDES, estimates, strict=True):
        yield side, estimate.value
        yield f"{side}_low", estimate.ci_low
        yield f"{side}_high", estimate.ci_high


def table(rows: pd.DataFrame) -> str:
    """Behaviours with their effect, in per cent."""
    lines = {}
    for _, row in rows.iterrows():
        lines[row["behaviour"]] = {
            "who": BEHAVIOURS[row["behaviour"]].title,
            **{side: _text_of(row, side) for side in SIDES},
            "the score": row["verdict"],
        }
    return markdown(pd.DataFrame(lines).T.rename_axis("habit"))


def _text_of(row: pd.Series, side: str) -> str:
    ends = {
        "unit": "fraction",
        "value": row[side],
        "ci_low": row[f"{side}_low"],
        "ci_high": row[f"{side}_high"],
    }
    return cell(pd.Series(ends))


def main(arguments: list[str]) -> None:
    tables = {"Per cent, with 95 % intervals": table(rows_at(ROWS, run, arguments))}
    write_page(PAGE, "Planted habits and the Gender Score", __file__, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
