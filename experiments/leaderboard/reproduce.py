"""Every metric on the captioners at hand, for gender and race: who is told apart from whom?

Usage: python -m experiments.leaderboard.reproduce [DATA_ROOT [OUTPUTS]]

With DATA_ROOT all cells are run and rows.csv and refused.csv are written; without it, tables and
figures are made from those that are there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from bias_pipeline.analysis.compare import contests
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.content import finished_runs
from bias_pipeline.report.tables import pointing
from bias_pipeline.results.store import Result
from bias_pipeline.stats.bootstrap import Draws
from experiments.leaderboard.figures import ranking_figure
from experiments.leaderboard.tables import ATTACKED, COUNTED, table_texts
from experiments.study import attempted, rows_of, write_results

HERE = Path(__file__).resolve().parent
# Seeds as in metric_comparison: one cell of DBAC costs as much as ten of any other.
SWEEPS = {
    "attackers": ["metric=lic,leakage,dpa", "seeds=10"],
    "dbac": ["metric=dbac", "seeds=3"],
    "counting": [
        "metric=gender_error,gender_ratio,group_accuracy,ba_mals,ba_directional,multi_directional,"
        "differential_fairness,cooccurrence,quality"
    ],
}
PARTS = "score|a_to_t|t_to_a|model|human|(a_to_t|t_to_a):(counts|shared|none)|mentions:.*"
KEPT = [
    "attribute", "metric", "metric_version", "captioner", "part", "value", "unit", "ci_low",
    "ci_high", "p_value", "n_images", "n_seeds", "coverage", "neutral_rate", "sign", "unfairness",
    "letters",
]  # fmt: skip


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The rows of all cells, headlines with their place among the captioners."""
    common = ["dataset=lic", f"dataset.root={data / 'lic' / 'bias_data'}", "logger=csv"]
    common += ["captioner=all", "attribute=gender,race"]
    found = [attempted(name, outputs, *words, *common) for name, words in SWEEPS.items()]
    rows = pd.concat([own for own, _ in found], ignore_index=True)
    results, draws = finished_runs(outputs)
    own = [result for result in results if result.run_id in set(rows["run_id"])]
    refused = pd.concat([*(lines for _, lines in found), undefined(own)], ignore_index=True)
    refused.to_csv(HERE / "refused.csv", index=False)
    placed = rows.merge(standings(own, draws), on=["run_id", "part"], how="left")
    return placed.loc[placed["part"].str.fullmatch(PARTS), KEPT]


def undefined(results: Sequence[Result]) -> pd.DataFrame:
    """Headlines that do not exist, with what their runs note of that."""
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


def standings(results: Sequence[Result], draws: Mapping[str, Mapping[str, Draws]]) -> pd.DataFrame:
    """What the report says of every headline: where it points, its rank, its group."""
    own = {result.run_id: result for result in results}
    lines = [
        {
            "run_id": standing.row.run_id,
            "part": contest.part,
            "sign": pointing(standing.row, own[standing.row.run_id]),
            "unfairness": standing.unfairness,
            "letters": standing.letters,
        }
        for contest in contests(results, draws)
        for standing in contest.standings
    ]
    return pd.DataFrame(lines)


def publish(rows: pd.DataFrame, refused: pd.DataFrame) -> None:
    """Write tables and figures."""
    write_results(HERE, table_texts(rows, refused))
    ranking_figure(rows, refused, ATTACKED, HERE / "attackers.svg")
    ranking_figure(rows, refused, COUNTED, HERE / "counting.svg")


if __name__ == "__main__":
    found = rows_of(HERE, run, sys.argv[1:])
    publish(found, pd.read_csv(HERE / "refused.csv"))
