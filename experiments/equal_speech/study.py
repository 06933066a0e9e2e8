"""Do published captioners leak the group more than people who use each word as often?

Usage: python -m experiments.equal_speech.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT (the folder that holds lic/bias_data) all cells are run and rows.csv is written;
without it, the tables are made from that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from bias_pipeline.metrics.value_names import BEYOND, SCORE
from bias_pipeline.report.conclusion_checks import LIMITS
from bias_pipeline.report.page import finished_runs
from experiments.study import markdown, printed_table, standings, sweep

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "rows.csv", HERE / "RESULTS.md"
CELLS = (
    "metric=lic,leakage", "alignment=constant,matched", "encoder.order=1", "attribute=gender,race",
    "captioner=all", "seeds=5", "logger=csv",
)  # fmt: skip
SHARES = {"all": "all", "half": "half", "quarter": "a quarter"}  # of the training images
PARTS = (
    "score", "model", "human", "matched:reach", "matched:people", "matched:alike", "matched:beyond",
    *(f"learning:{share}" for share in SHARES),
)  # fmt: skip
COLUMNS = [
    "attribute", "metric", "metric_version", "alignment", "captioner", "part", "value", "ci_low",
    "ci_high", "p_value", "n_images", "n_seeds", "coverage", "letters",
]  # fmt: skip


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The rows of all cells, with the letters of captioners that do not differ significantly."""
    root = f"dataset.root={data / 'lic' / 'bias_data'}"
    rows = sweep("equal style", outputs, *CELLS, "dataset=lic", root)
    results, draws = finished_runs(outputs)
    ranked = standings(results, draws, [SCORE, BEYOND])
    placed = rows.merge(ranked, on=["run_id", "part"], how="left")
    return placed.loc[placed["part"].isin(PARTS), COLUMNS]


def answer(beyond: pd.Series, reach: float) -> str:
    """The conclusion about a captioner at equal style.

    Args:
        beyond: its score minus that of an annotator at its length.
        reach: share of its words that annotators use as often.
    """
    if reach < LIMITS.reach:
        return "unknown: people use too few of its words"
    if beyond["ci_low"] > 0:
        return "yes"
    if beyond["ci_high"] <= LIMITS.negligible:
        return "no"
    return f"not above {100 * beyond['ci_high']:.1f} points"


def table(rows: pd.DataFrame, attribute: str, metric: str) -> pd.DataFrame:
    """Captioners as lines: the score under either alignment, annotators, what is beyond, answer."""
    chosen = rows[(rows["attribute"] == attribute) & (rows["metric"] == metric)]
    lines = {}
    for captioner, cells in chosen.groupby("captioner", sort=False):
        part = cells.set_index(["alignment", "part"])
        beyond = part.loc[("matched", "matched:beyond")]
        reach = part.loc[("matched", "matched:reach"), "value"]
        lines[captioner] = {
            f"{metric}, as published aligned": _cell(part.loc[("constant", "score")]),
            "at equal style": _cell(part.loc[("matched", "score")]),
            "people at equal style": _cell(part.loc[("matched", "matched:people")]),
            "annotator at its length": _cell(part.loc[("matched", "matched:alike")]),
            "beyond": _cell(beyond),
            "reach": f"{100 * reach:.1f}",
            "leaks the group?": answer(beyond, reach),
        }
    return pd.DataFrame(lines).T


def _cell(row: pd.Series) -> str:
    letters = "" if pd.isna(row["letters"]) else f" {row['letters']}"
    value, low, high = (round(100 * row[name], 1) + 0.0 for name in ("value", "ci_low", "ci_high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]{letters}"


def curves(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """LIC of attackers of all, half and a quarter of the images, under either alignment."""
    chosen = rows[(rows["attribute"] == attribute) & (rows["metric"] == "lic")]
    wide = 100 * chosen.pivot(index="captioner", columns=["alignment", "part"], values="value")
    wide = wide.reindex(index=chosen["captioner"].unique())
    columns = {}
    for alignment, name in (("constant", "as published aligned"), ("matched", "at equal style")):
        points = wide[alignment][[f"learning:{share}" for share in SHARES]]
        columns |= {f"{name}, {SHARES[share]}": points[f"learning:{share}"] for share in SHARES}
    table = pd.DataFrame(columns)
    table.loc["mean"] = table.mean()
    return table.map("{:.1f}".format)


def ranks(rows: pd.DataFrame) -> pd.DataFrame:
    """Rank agreement of LIC under either alignment with the printed one and with error (gender)."""
    scores = rows[
        (rows["attribute"] == "gender") & (rows["metric"] == "lic") & (rows["part"] == "score")
    ]
    wide = scores.pivot(index="captioner", columns="alignment", values="value")
    printed = printed_table("imagecaptioner2", "3", "")
    wide["LIC, printed (Hirota)"] = printed["lic"].reindex(wide.index)
    wide["error, printed"] = printed["error"].reindex(wide.index)
    return wide.corr(method="spearman")


def main(arguments: Sequence[str]) -> None:
    """Run all cells, or make the tables alone."""
    if arguments:
        with TemporaryDirectory() as folder:
            outputs = Path(arguments[1]) if len(arguments) > 1 else Path(folder)
            run(Path(arguments[0]), outputs).to_csv(ROWS, index=False, float_format="%.6g")
    rows = pd.read_csv(ROWS)
    texts = ["# Seven published captioners at equal style\n\nPoints; 95 % intervals.\n"]
    texts += [
        f"## {attribute}, {metric}\n\n{markdown(table(rows, attribute, metric))}\n"
        for attribute in ("gender", "race")
        for metric in ("lic", "leakage")
    ]
    texts += [
        f"## LIC by training images, {attribute}\n\n{markdown(curves(rows, attribute))}\n"
        for attribute in ("gender", "race")
    ]
    texts.append(f"## Rank agreement, gender\n\n{markdown(ranks(rows).round(2))}\n")
    PAGE.write_text("\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
