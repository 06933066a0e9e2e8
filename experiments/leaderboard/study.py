"""Every metric on the captioners that we have, for gender and race: which differ significantly?

Usage: python -m experiments.leaderboard.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT all cells are run and rows.csv and refused.csv are written; without it, tables and
figures are made from those that are there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.page import finished_runs
from bias_pipeline.results.rows import Result
from experiments.assumed_group.study import FILES, write_common
from experiments.leaderboard.figures import ranking_figure
from experiments.leaderboard.tables import ATTACKED, COUNTED, table_texts
from experiments.study import HOLD_OUT, HOLD_OUT_TASKS, attempt, rows_of, standings, write_results

HERE = Path(__file__).resolve().parent
# Seeds as in metric_comparison: one cell of DBAC costs as much as ten of any other.
SWEEPS = {
    "attackers": ["metric=lic,leakage", "seeds=10", *HOLD_OUT],
    "dpa": ["metric=dpa", "seeds=10", *HOLD_OUT_TASKS],
    "dbac": ["metric=dbac", "seeds=3", *HOLD_OUT_TASKS],
    "counting": [
        "metric=gender_error,gender_ratio,group_accuracy,ba_mals,ba_directional,multi_directional,"
        "differential_fairness,cooccurrence,quality"
    ],
}
PARTS = "score|a_to_t|t_to_a|model|human|(a_to_t|t_to_a):(counts|shared|none)|mentions:.*"
COLUMNS = [
    "attribute", "metric", "metric_version", "captioner", "part", "value", "unit", "ci_low",
    "ci_high", "p_value", "n_images", "n_seeds", "coverage", "neutral_rate", "sign", "unfairness",
    "letters",
]  # fmt: skip


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The rows of all cells; headlines with their rank among the captioners."""
    common = ["dataset=lic", f"dataset.root={data / 'lic' / 'bias_data'}", "logger=csv"]
    common += ["captioner=all", "attribute=gender,race"]
    attempts = [attempt(name, outputs, *words, *common) for name, words in SWEEPS.items()]
    placed = [_rank_rows(outputs, attempts), further_metrics(data, outputs / "described")]
    rows, refused = (pd.concat(frames, ignore_index=True) for frames in zip(*placed, strict=True))
    refused.to_csv(HERE / "refused.csv", index=False)
    return rows


def _rank_rows(
    outputs: Path, attempts: Sequence[tuple[pd.DataFrame, pd.DataFrame]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of finished sweeps with ranks, and what was refused or is undefined."""
    rows = pd.concat([shown for shown, _ in attempts], ignore_index=True)
    results, draws = finished_runs(outputs)
    shown = [result for result in results if result.run_id in set(rows["run_id"])]
    refused = pd.concat(
        [*(lines for _, lines in attempts), undefined_headlines(shown)], ignore_index=True
    )
    placed = rows.merge(standings(shown, draws), on=["run_id", "part"], how="left")
    return placed.loc[placed["part"].str.fullmatch(PARTS), COLUMNS], refused


def further_metrics(data: Path, outputs: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and refusals of metrics that need all objects, or people whose group is unsure.

    LIC's files lack both; these are the images of COCO that all captioners describe.
    """
    outputs.mkdir(parents=True, exist_ok=True)
    common = outputs / "common.csv"
    write_common(data, data / "coco/attributes/images_val2014.csv", common)
    annotations = data / "coco/annotations"
    tried = attempt(
        "described",
        outputs,
        "metric=assumed_group,descriptions,objects",
        "attribute=gender,race",
        "dataset=coco",
        "dataset.strict=false",
        f"dataset.attributes={common}",
        f"dataset.captions={annotations / 'captions_val2014.json'}",
        f"dataset.instances={annotations / 'instances_val2014.json'}",
        f"dataset.captioners={data / 'captioners'}",
        f"captioner={','.join(FILES.values())}",
        "logger=csv",
    )
    names = {stem: name for name, stem in FILES.items()}
    rows, refused = (
        lines.assign(captioner=lines["captioner"].map(names))
        for lines in _rank_rows(outputs, [tried])
    )
    return rows, refused


def undefined_headlines(results: Sequence[Result]) -> pd.DataFrame:
    """Headlines that do not exist, with the notes of their runs."""
    lines = [
        {
            "attribute": row.attribute,
            "metric": row.metric,
            "captioner": row.captioner,
            "reason": "; ".join(note for note in _notes(result) if _is_reason(note)),
        }
        for result in results
        for row in result.rows
        if row.part in HEADLINES and math.isnan(row.value)
    ]
    return pd.DataFrame(lines, columns=["attribute", "metric", "captioner", "reason"])


def _is_reason(note: str) -> bool:
    """Whether a note says why a headline does not exist."""
    return "cannot be scored" in note or "nothing can be said" in note


def _notes(result: Result) -> list[str]:
    notes = result.manifest.get("notes", [])
    return [str(note) for note in notes] if isinstance(notes, list) else []


def publish(rows: pd.DataFrame, refused: pd.DataFrame) -> None:
    """Write tables and figures."""
    write_results(HERE, table_texts(rows, refused))
    ranking_figure(rows, refused, ATTACKED, HERE / "attackers.svg")
    ranking_figure(rows, refused, COUNTED, HERE / "counting.svg")


if __name__ == "__main__":
    rows = rows_of(HERE, run, sys.argv[1:])
    publish(rows, pd.read_csv(HERE / "refused.csv"))
