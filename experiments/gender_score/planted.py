"""What planted habits do to the Gender Score, with real models.

Usage: python -m experiments.gender_score.planted [CACHE]

With CACHE, a folder of scored texts, everything is computed and planted_rows.csv is written;
without it, the table is made from that. The card of the metric claims what stands there, and a
test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bias_pipeline.calibration.behaviour import BEHAVIOURS, Behaviour, corpus_of, headlines, verdict
from bias_pipeline.config import compose
from bias_pipeline.metrics.base import Metric
from bias_pipeline.stats.bootstrap import Estimate
from experiments.study import cell, markdown

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "planted_rows.csv", HERE / "PLANTED.md"
METRIC = "gender_score"
SEEDS = (0, 12, 456, 789)
SIDES = ("before", "planted")


def run(cache: Path) -> pd.DataFrame:
    """A line a behaviour: the score before and with the habit, and whether it moved."""
    metric = compose.cell([f"metric={METRIC}", f"paths.cache={cache}"]).build("metric")
    return pd.DataFrame([_line(metric, name, own) for name, own in BEHAVIOURS.items()])


def _line(metric: Metric, name: str, own: Behaviour) -> dict[str, object]:
    corpora = (own.before, (own.planted, own.people))
    estimates = [headlines(metric, corpus_of(*it), SEEDS)["score"].estimate for it in corpora]
    told = dict(_ends(estimates))
    return {
        "behaviour": name,
        **told,
        "verdict": verdict(*estimates),
        "version": metric.info.version,
    }


def _ends(estimates: list[Estimate]) -> Iterator[tuple[str, float]]:
    for side, own in zip(SIDES, estimates, strict=True):
        yield side, own.value
        yield f"{side}_low", own.ci_low
        yield f"{side}_high", own.ci_high


def table(rows: pd.DataFrame) -> str:
    """Behaviours by what they do, per cent."""
    lines = {}
    for _, row in rows.iterrows():
        lines[row["behaviour"]] = {
            "who": BEHAVIOURS[row["behaviour"]].title,
            **{side: _told(row, side) for side in SIDES},
            "the score": row["verdict"],
        }
    return markdown(pd.DataFrame(lines).T.rename_axis("habit"))


def _told(row: pd.Series, side: str) -> str:
    ends = {
        "unit": "fraction",
        "value": row[side],
        "ci_low": row[f"{side}_low"],
        "ci_high": row[f"{side}_high"],
    }
    return cell(pd.Series(ends))


def main(cache: str | None = None) -> None:
    if cache is not None:
        run(Path(cache)).to_csv(ROWS, index=False, float_format="%.5g")
    rows = pd.read_csv(ROWS, keep_default_na=False, na_values=[""])
    head = "# Planted habits and the Gender Score\n\nMade by `planted.py`; do not edit.\n\n"
    PAGE.write_text(f"{head}{table(rows)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
