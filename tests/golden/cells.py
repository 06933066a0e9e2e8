"""Cells of every kind, whose numbers and run ids nobody moves by accident.

``python -m tests.golden.cells`` freezes today's numbers and ids, for a change that is meant to move
them; with ``ids`` only the ids.
"""

import math
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell

ROWS = Path(__file__).with_name("rows.csv")
IDS = Path(__file__).with_name("ids.csv")
SMALL = ("dataset.n_images=400", "seeds=2", "stats.resamples=50", "captioner=stereotyper")
# Precision is set: by itself it follows the processor.
NET = ("trainer.max_epochs=2", "trainer.precision=32-true", "probe.processes=1", "head=linear")

CELLS: dict[str, tuple[str, ...]] = {
    "lic": (),
    "lic hold-out": ("split=lic", "scoring.average=captions"),
    "lic equal speech": ("alignment=matched", "encoder.order=1"),
    "lic race": ("attribute=race",),
    "lic groups crossed": ("attribute=[gender,race]", "attribute.min_images=20"),
    "lic constant alignment": ("alignment=constant",),
    "lic top_n alignment": ("alignment=top_n",),
    "lic one side, ratio": ("metric.sides=[model]", "scoring=confidence"),
    "lic ic2 split": ("split=ic2", "encoder.order=1"),
    "leakage": ("metric=leakage",),
    "dbac": ("metric=dbac", "metric.positions=2"),
    "dbac hold-out": ("metric=dbac", "metric.positions=2", "split=dbac"),
    "dbac equal speech": ("metric=dbac", "metric.positions=2", "alignment=matched"),
    "dbac pairs, accuracy": (
        "metric=dbac", "metric.positions=2", "metric.aggregate=per_pair", "scoring=accuracy",
    ),
    "dpa": ("metric=dpa",),
    "ba_mals": ("metric=ba_mals",),
    "ba_directional": ("metric=ba_directional",),
    "multi_directional": ("metric=multi_directional",),
    "differential_fairness": ("metric=differential_fairness",),
    "gender_error": ("metric=gender_error",),
    "gender_error groups crossed": (
        "metric=gender_error", "attribute=[gender,race]", "attribute.min_images=20",
    ),
    "gender_ratio": ("metric=gender_ratio",),
    "assumed_group": ("metric=assumed_group",),
    "group_accuracy": ("metric=group_accuracy",),
    "declines": ("metric=declines",),
    "cooccurrence": ("metric=cooccurrence",),
    "objects": ("metric=objects",),
    "quality": ("metric=quality",),
    "gender_distance": ("metric=gender_distance",),
    "lstm": ("encoder=lstm", *NET),
    "bilstm, stacked": ("encoder=bilstm", "probe.ensemble=2", *NET),
    "birnn, mlp": ("encoder=birnn", *NET, "head=mlp3"),
    "transformer1": ("encoder=transformer1", *NET),
}  # fmt: skip


def rows_of(name: str) -> pd.DataFrame:
    """(R,) part, value and interval of a cell, computed from nothing."""
    with TemporaryDirectory() as folder:
        cell = compose.cell([*SMALL, *CELLS[name], f"paths.outputs={folder}"])
        result = run_cell(cell.corpus(), cell.build("metric"), cell.seeds, run_id=name)
    return pd.DataFrame(
        {
            "cell": name,
            "part": row.part,
            "value": row.value,
            "ci_low": row.ci_low,
            "ci_high": row.ci_high,
            "p_value": math.nan if row.p_value is None else row.p_value,
            "n_images": row.n_images,
        }
        for row in result.rows
    )


def id_of(name: str) -> str:
    """The run id of a cell."""
    cell = compose.cell([*SMALL, *CELLS[name]])
    return cell.run_id(cell.corpus())


def main() -> None:
    """Freeze the numbers and the ids of today."""
    pd.DataFrame({"cell": name, "run_id": id_of(name)} for name in CELLS).to_csv(IDS, index=False)
    if sys.argv[1:] == ["ids"]:
        return
    pd.concat(map(rows_of, CELLS)).to_csv(ROWS, index=False, float_format="%.9g")


if __name__ == "__main__":
    main()
