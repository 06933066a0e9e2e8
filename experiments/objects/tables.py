"""The tables of the study, from rows.csv."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.study import markdown, write_results

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
GAPS = {
    "gap": "gap",
    "gap:number": "as many objects",
    "gap:alike": "same objects",
    "gap:words": "and words",
    "gap:recall": "recall",
}


def write_tables() -> None:
    """Write RESULTS.md."""
    rows = pd.read_csv(ROWS, keep_default_na=False)
    write_results(
        HERE,
        {
            "All pictures": _whole_table(rows[rows["n_images"] == 0]),
            "Draws of 1,500 pictures": _draws(rows[rows["n_images"] > 0]),
        },
    )


def _whole_table(rows: pd.DataFrame) -> str:
    lines = [
        {
            "speaker": row["speaker"],
            "invent": f"{100 * row['invented']:.1f} %",
            **{title: _half(row, part) for part, title in GAPS.items()},
            "score": _ends(row, "score"),
            "answer": row["answer"].replace("_", " "),
            "named": row["named"],
        }
        for _, row in rows.iterrows()
    ]
    return markdown(pd.DataFrame(lines).set_index("speaker"))


def _draws(rows: pd.DataFrame) -> str:
    lines = []
    for speaker, draws in rows.groupby("speaker", sort=False):
        score = 100 * draws["score"].astype(float)
        gap, low, high = (draws[f"gap:words{end}"].astype(float) for end in ("", " low", " high"))
        lines.append(
            {
                "speaker": speaker,
                "draws": len(draws),
                "Yes": int((draws["answer"] == "yes").sum()),
                "mean score": f"{score.mean():.2f}",
                "sd": f"{score.std():.2f}",
                "mean gap, same objects and words": f"{100 * gap.mean():+.1f}",
                "gap beyond chance": int(((low > 0) | (high < 0)).sum()),
            }
        )
    return markdown(pd.DataFrame(lines).set_index("speaker"))


def _half(row: pd.Series, part: str) -> str:
    """A number of points with half of its interval's width."""
    half = 50 * (row[f"{part} high"] - row[f"{part} low"])
    return f"{100 * row[part]:+.1f} ±{half:.1f}"


def _ends(row: pd.Series, part: str) -> str:
    low, high = (100 * row[f"{part} {end}"] for end in ("low", "high"))
    return f"{100 * row[part]:.1f} [{low:.1f}, {high:.1f}]"
