"""How far the same rankings differ between five codes' readings of them.

Usage: python -m experiments.vl_bias.readings [OUTPUTS]

With OUTPUTS, a folder for runs, readings.csv is written (minutes, on two cores); without it, the
tables are made from the readings.csv that is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.study import cell, markdown, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
CODES = ("oxai", "debiaslens", "bendvlm", "visogender", "clip_clip")
SKEWS = tuple(f"skew:{name}" for name in ("max", "min", "ndkl", "kl", "bias"))
DEPTH = 100  # at which all codes are read, beside their own
DATA = ("dataset=scenes", "dataset.n_images=4000", "logger=csv", "stats.resamples=200")
TABLES = {
    "own": "Each at its own depth (skews in nats, bias in per cent)",
    "one": f"All at {DEPTH} (skews in nats, bias in per cent)",
}


def run(outputs: Path) -> pd.DataFrame:
    """The same model and pictures as each code reads them."""
    frames = []
    for code in CODES:
        words = (f"experiment=retrieval_{code}", *DATA)
        frames.append(sweep("own", outputs, *words).assign(code=code))
        frames.append(sweep("one", outputs, *words, f"metric.k={DEPTH}").assign(code=code))
    rows = pd.concat(frames, ignore_index=True)
    parts = ("score", "null", *SKEWS, *(f"null:{name}" for name in SKEWS))
    return rows[rows["part"].isin(parts)]


def table(rows: pd.DataFrame, depths: str) -> pd.DataFrame:
    """What each code would say, and what a fair ranker has of MaxSkew."""
    lines = {}
    for code, group in rows[rows["study"] == depths].groupby("code", sort=False):
        scores = group.set_index("part")
        cells = {name: cell(scores.loc[name]) for name in SKEWS}
        lines[code] = {**cells, "null:skew:max": cell(scores.loc["null:skew:max"])}
    return pd.DataFrame(lines).T.rename_axis("as read by")


def main(arguments: list[str]) -> None:
    rows = rows_at(HERE / "readings.csv", run, arguments)
    tables = {title: markdown(table(rows, depths)) for depths, title in TABLES.items()}
    write_page(HERE / "READINGS.md", "Readings", __file__, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
