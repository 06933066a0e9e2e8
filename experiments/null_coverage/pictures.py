"""The same null for ImageCaptioner2, whose attackers see pictures.

Usage: python -m experiments.null_coverage.pictures [TRIALS]

With TRIALS everything is computed and pictures.csv is written; without it, the table is made anew
from the pictures.csv that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pandas as pd

from bias_pipeline.run import compose
from experiments.null_coverage.study import (
    COMMON,
    HERE,
    SEEDS,
    columns,
    coverage_table,
    shuffle_groups,
    trial_rows,
)
from experiments.study import markdown, write_page

ROWS, PAGE = HERE / "pictures.csv", HERE / "PICTURES.md"
NAME = "imagecaptioner2"
# Objects of a scene instead of its pixels, and fewer images: a trial trains six networks.
CELL = (
    f"metric={NAME}",
    "encoder=sat",
    "encoder.backbone=annotations",
    "metric.leaks=[]",
    *COMMON,
    "dataset.n_images=300",
)
PARTS = ("score", "score:accuracy", "score:lic")


def run(trials: int, scratch: str) -> Iterator[dict[str, object]]:
    """One line per trial and part; new images, captions and shuffled groups in every trial."""
    for trial in range(trials):
        cell = compose.cell([*CELL, f"dataset.seed={1 + trial}", f"paths.outputs={scratch}"])
        metric, corpus = cell.build("metric"), shuffle_groups(cell.corpus(), trial)
        score = metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
        for part in PARTS:
            line = {"trial": trial, "metric": NAME, "part": part}
            yield line | columns(score.parts[part], metric.info)
        print(f"{trial + 1} of {trials}", flush=True)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Coverage; the p of a run is that of the headline."""
    return coverage_table(rows.assign(p_value=rows["p_value"].where(rows["part"] == "score")))


def write(rows: pd.DataFrame) -> None:
    """Write the table made of the rows."""
    tables = {"New images, captions and shuffled groups in every trial": markdown(table(rows))}
    write_page(PAGE, "Results of ImageCaptioner2", __file__, tables)


def main(trials: str | None = None) -> None:
    write(trial_rows(run, ROWS, trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
