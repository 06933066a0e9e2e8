"""Sensitivity and consistency, recomputed from the papers' own tables.

DBAC: coefficients of variation from the scores of Tables 10 to 15, beside those of Tables 5 and 6.
ImageCaptioner2: conflict scores and correlations from Tables 4 and 8.

Usage: python -m experiments.encoder_sensitivity.published
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bias_pipeline.studies.attacker_agreement import Variants, agreements, reduction, sensitivity
from experiments.study import markdown, printed_table

HERE = Path(__file__).resolve().parent
# Summary to the tables of scores it was made from, DBAC's and LIC's.
SUMMARIES = {"5a": ("10", "11"), "5b": ("12a", "12b"), "6a": ("13", "14"), "6b": ("15a", "15b")}
WHAT = {
    "5a": "gender, from scratch",
    "5b": "gender, pre-trained",
    "6a": "race, from scratch",
    "6b": "race, pre-trained",
}
TOLERANCE = 0.005  # the largest error of rounding a coefficient to two decimals
CLASSIFIERS = {"LIC": ("LIC_LSTM", "LIC_BERT"), "ImageCaptioner2": ("OURS_SAT", "OURS_GRIT")}


def scores(table: str) -> Variants:
    """Printed scores of a table of DBAC, captioners by encoders."""
    return Variants.of_table(table, printed_table("dbac", table, "").T.to_dict())


def coefficients() -> pd.DataFrame:
    """Every coefficient of variation, ours from the printed scores and the printed one."""
    lines = []
    for summary, tables in SUMMARIES.items():
        printed = printed_table("dbac", summary, "")
        for metric, table in zip(("dbac", "lic"), tables, strict=True):
            for captioner, interval in sensitivity(scores(table)).per_captioner.items():
                printed_value = float(printed.loc[captioner, f"cv_{metric}"])
                lines.append((summary, metric, captioner, interval.value, printed_value))
    return pd.DataFrame(lines, columns=["table", "metric", "captioner", "ours", "printed"])


def reductions() -> pd.DataFrame:
    """Mean reductions in per cent: from the scores, from the printed rows, and as printed."""
    lines = {}
    for summary, (dbac, lic) in SUMMARIES.items():
        printed = printed_table("dbac", summary, "")["reduction"].astype(float)
        lines[f"{summary} ({WHAT[summary]})"] = {
            "from scores": 100 * reduction(scores(dbac), scores(lic)).mean.value,
            "mean of printed rows": printed.drop("average").mean(),
            "printed": printed["average"],
        }
    return pd.DataFrame(lines).T


def consistency() -> pd.DataFrame:
    """Agreement of two classifiers of each metric, Tables 4 and 8 of ImageCaptioner2."""
    lines = {}
    for table in ("4", "8"):
        for metric, parts in CLASSIFIERS.items():
            printed = {
                part: printed_table("imagecaptioner2", table, part)["score"] for part in parts
            }
            (agreement,) = agreements(Variants.of_table(metric, pd.DataFrame(printed).T.to_dict()))
            lines[f"Table {table}, {metric}"] = {
                "conflicts (%)": 100 * agreement.conflicts.value,
                "Pearson": agreement.pearson.value,
                "Spearman": agreement.spearman.value,
                "Kendall": agreement.kendall.value,
            }
    return pd.DataFrame(lines).T


def text() -> str:
    """The page."""
    rows = coefficients()
    rows["off"] = (rows["ours"] - rows["printed"]).abs()
    near = rows["off"] <= TOLERANCE
    counts = [
        f"* {metric}: {int(near[chosen].sum())} of {int(chosen.sum())} printed coefficients are "
        f"within {TOLERANCE} of those of the printed scores; the largest difference is "
        f"{rows.loc[chosen, 'off'].max():.3f}."
        for metric in ("dbac", "lic")
        if (chosen := rows["metric"] == metric).any()
    ]
    odd = rows[~near].drop(columns="off").set_index("table")
    return "\n".join(
        [
            "# The papers' tables, recomputed\n",
            "Made by `python -m experiments.encoder_sensitivity.published`; do not edit.\n",
            "## DBAC: coefficients of variation (Tables 5 and 6)\n",
            *counts,
            "\nMean reduction of DBAC's coefficients against LIC's, per cent:\n",
            markdown(reductions()),
            "Coefficients that do not follow from the printed scores:\n",
            markdown(odd),
            "## ImageCaptioner2: consistency of two classifiers (Tables 4 and 8)\n",
            markdown(consistency()),
        ]
    )


if __name__ == "__main__":
    (HERE / "PUBLISHED.md").write_text(text())
