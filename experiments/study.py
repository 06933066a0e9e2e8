"""What the studies share: running sweeps through the door and reading published numbers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent


def sweep(name: str, outputs: Path, *overrides: str) -> pd.DataFrame:
    """Run a sweep of cells; its rows with the study's name in front."""
    command = [sys.executable, "-m", "bias_pipeline", *overrides, f"paths.outputs={outputs}"]
    print(f"{name}: python -m bias_pipeline {' '.join(overrides)}", flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    rows = pd.read_csv(outputs / "table.csv", keep_default_na=False, na_values=[""])
    rows.insert(0, "study", name)
    return rows


def rows_of(
    study: Path, run: Callable[[Path, Path], pd.DataFrame], arguments: Sequence[str]
) -> pd.DataFrame:
    """The rows of a study: measured anew if a folder of data is named, else those committed.

    Args:
        study: its folder.
        run: from the data and the folder for runs to rows.
        arguments: ``[DATA [OUTPUTS]]``.
    """
    path = study / "rows.csv"
    if arguments:
        outputs = arguments[1] if len(arguments) > 1 else f"outputs/{study.name}"
        run(Path(arguments[0]), Path(outputs)).to_csv(path, index=False, float_format="%.6g")
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def published(paper: str, table: str, part: str) -> pd.DataFrame:
    """A printed table in per cent: rows of models, columns of quantities and their deviations."""
    rows = pd.read_csv(HERE / "published" / f"{paper}.csv", dtype={"table": str})
    own = rows[(rows["table"] == table) & (rows["part"].fillna("") == part)]
    values = own.pivot_table(index="row", columns="column", values="value", sort=False)
    stds = own.pivot_table(index="row", columns="column", values="std", sort=False)
    return values.join(stds.add_suffix("_std"))


def part(rows: pd.DataFrame, study: str, name: str, index: str = "captioner") -> pd.Series:
    """One part of a study in per cent, by captioner."""
    own = rows[(rows["study"] == study) & (rows["part"] == name)]
    return own.set_index(index)["value"] * 100


def markdown(table: pd.DataFrame, digits: int = 2) -> str:
    """A table as Markdown, the index as first column."""
    table = table.reset_index()
    lines = [list(map(str, table.columns)), ["---"] * len(table.columns)]
    lines += [
        [f"{v:.{digits}f}" if isinstance(v, float) else str(v) for v in values]
        for values in table.itertuples(index=False)
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def agreement(own: Sequence[float], printed: Sequence[float]) -> dict[str, float]:
    """Pearson, mean absolute difference, and that difference after taking out the mean shift."""
    gap = pd.Series(list(own)) - pd.Series(list(printed))
    return {
        "pearson": float(pd.Series(list(own)).corr(pd.Series(list(printed)))),
        "mean_absolute": float(gap.abs().mean()),
        "centred": float((gap - gap.mean()).abs().mean()),
    }
