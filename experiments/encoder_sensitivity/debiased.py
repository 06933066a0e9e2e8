"""Does an attacker score lower when its encoder is debiased?

Usage: python -m experiments.encoder_sensitivity.debiased [DATA_ROOT OUTPUTS]

With arguments LIC is computed for real captioners with MiniLM's vectors as they are and debiased,
and debiased_rows.csv is written; without, the table is made from that.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.study import HOLD_OUT, cell, lic_data, markdown, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "debiased_rows.csv", HERE / "DEBIASED.md"
EDITS = ("none", "mean_difference", "subspace", "mean_neuron", "erasure")
CELL = ("metric=lic", *HOLD_OUT, "encoder=minilm", "probe=convex", "seeds=3", "metric.positions=1")
MASKINGS = ("attribute", "none")
PARTS = {"model": "LIC_M", "human": "LIC_D", "score": "LIC"}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """Rows of every captioner under every debiasing and masking."""
    common = (*lic_data(data), "captioner=all", "logger=csv", *CELL)
    frames = [
        sweep(f"{debias}, masking={masking}", outputs, *common, f"debias={debias}",
              f"masking={masking}")
        for masking in MASKINGS
        for debias in EDITS
    ]  # fmt: skip
    rows = pd.concat(frames, ignore_index=True)
    return rows[rows["part"].isin(PARTS)]


def table(rows: pd.DataFrame, masking: str, part: str) -> pd.DataFrame:
    """One line per captioner, one column per debiasing, in per cent."""
    scores = rows[rows["part"] == part].set_index(["study", "captioner"])
    captioners = sorted(rows["captioner"].unique())
    lines = {
        name: {edit: cell(scores.loc[f"{edit}, masking={masking}", name]) for edit in EDITS}
        for name in captioners
    }
    return pd.DataFrame(lines).T.rename_axis("captioner")


def write(rows: pd.DataFrame) -> None:
    """Write the page."""
    tables = {
        f"{title}, masking={masking} (per cent)": markdown(table(rows, masking, part))
        for masking in MASKINGS
        for part, title in PARTS.items()
    }
    write_page(PAGE, "Debiased encoders", __file__, tables)


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
