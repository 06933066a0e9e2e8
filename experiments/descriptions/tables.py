"""The tables of the study, from rows.csv."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.descriptions.speakers import ALIKE, FAIR, PLANTED, SPOKEN_BY_ANNOTATORS
from experiments.study import markdown, write_results

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"


def write_tables() -> None:
    """Write RESULTS.md."""
    read = pd.read_csv(ROWS, keep_default_na=False)
    rows, race = (read[read["attribute"] == name] for name in ("gender", "race"))
    write_results(
        HERE,
        {
            "Fair captioners": _table(rows, FAIR),
            "Annotators, and speakers alike in what they say of whom": _table(rows, ALIKE),
            "Planted differences": _table(rows, PLANTED),
            "Annotators, with labels of race": _table(race, SPOKEN_BY_ANNOTATORS),
        },
    )


def _table(rows: pd.DataFrame, speakers: tuple[str, ...]) -> str:
    chosen = rows[rows["speaker"].isin(speakers)]
    lines = []
    for speaker in speakers:
        for (style, n_images), one in _cells(chosen[chosen["speaker"] == speaker], speaker):
            accused = (one["answer"] == "yes").sum()
            score = one["score"].astype(float) * 100
            names = "; ".join(one["named"]).split("; ")
            named = pd.Series([name for name in names if name], dtype=str).value_counts()[:3]
            lines.append(
                {
                    "speaker": speaker,
                    "style": style,
                    "images": n_images,
                    "draws": len(one),
                    "Yes": int(accused),
                    "mean score": f"{score.mean():.1f}",
                    "sd": f"{score.std():.1f}",
                    "named most": ", ".join(f"{name} {n}" for name, n in named.items()),
                }
            )
    return markdown(pd.DataFrame(lines).set_index("speaker"))


def _cells(rows: pd.DataFrame, speaker: str):
    """The draws of one speaker by style and size; both styles together where they alternate."""
    if speaker in ALIKE:
        rows = rows.assign(style="both")
    return rows.groupby(["style", "n_images"])
