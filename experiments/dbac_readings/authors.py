"""The readings of DBAC's own authors: exact sets of objects, with and without attackers.

Usage: python -m experiments.dbac_readings.authors [DATA_ROOT [OUTPUTS]]

With DATA_ROOT authors_rows.csv is written (three minutes of one core); without it, AUTHORS.md is
made from those rows. Attackers are linear and read captions that they did not learn from; with
``split=same``, as the authors' code has it, they read captions that they learnt.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.dbac_readings.study import HERE
from experiments.study import lic_data, markdown, read_rows, sweep, write_page

ROWS, PAGE = HERE / "authors_rows.csv", HERE / "AUTHORS.md"
SPLITS = {"other captions": "crossfit_natural", "the same captions": "same"}
PARTS = {
    "a_to_t": "A→T",
    "a_to_t:priors": "sets alone",
    "a_to_t:none": "attackers alone",
    "a_to_t:mentions:model": "objects a caption",
    "t_to_a": "T→A",
}
COLUMNS = [
    "metric",
    "captioner",
    "split",
    "part",
    "value",
    "ci_low",
    "ci_high",
    "n_images",
    "metric_version",
]


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The rows of all captioners, tested on other and on the same captions."""
    frames = []
    for split in SPLITS.values():
        words = ["experiment=dbac_authors", "alignment=none", f"split={split}", "seeds=1"]
        rows = sweep(split, outputs, "captioner=all", *words, *lic_data(data), "logger=csv")
        frames.append(rows[rows["part"].isin(PARTS)].assign(split=split))
    return pd.concat(frames)[COLUMNS]


def table(rows: pd.DataFrame, split: str) -> pd.DataFrame:
    """A line for each captioner; the fewest objects a caption first."""
    wide = rows[rows["split"] == split].pivot_table(
        index="captioner", columns="part", values="value"
    )
    wide = wide.sort_values("a_to_t:mentions:model")
    percent = wide.drop(columns="a_to_t:mentions:model") * 100
    percent["a_to_t:mentions:model"] = wide["a_to_t:mentions:model"]
    return percent[[*PARTS]].rename(columns=PARTS)


def main(*arguments: str) -> None:
    if arguments:
        outputs = Path(arguments[1] if arguments[1:] else "outputs/dbac_authors")
        run(Path(arguments[0]), outputs).to_csv(ROWS, index=False, float_format="%.5g")
    rows = read_rows(ROWS)
    tables = {
        f"Attackers tested on {tested} (per cent)": markdown(table(rows, split))
        for tested, split in SPLITS.items()
    }
    write_page(PAGE, "DBAC as its authors' code has it", __file__, tables)


if __name__ == "__main__":
    main(*sys.argv[1:])
