"""Which metrics see bias that is in the language alone: C1 to C4 of DBAC, section 5.1.

Usage: python -m experiments.language_bias.reproduce [DATA_ROOT [OUTPUTS]]

With DATA_ROOT everything is computed and rows.csv is written; without it, the tables are made from
the rows.csv that is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.study import cell, markdown, rows_of, sweep, write_results

HERE = Path(__file__).resolve().parent
LEVELS = {"0.6": "C1", "0.7": "C2", "0.8": "C3", "0.9": "C4"}
# Metric to the part that is people's, and what it is where there is no bias.
PARTS = {
    "lic": ("human", "LIC, confidence of right guesses"),
    "leakage": ("human", "accuracy"),
    "dbac": ("a_to_t:quality:human", "DBAC A→T, attacker's quality"),
    "dpa": ("a_to_t:quality:human", "DPA A→T, attacker's quality"),
    "ba_directional": ("a_to_t", "BA→ A→T"),
    "ba_mals": ("score", "BA (MALS)"),
    "cooccurrence": ("human", "skew of objects"),
    "differential_fairness": ("human", "differential fairness"),
    "gender_distance": ("human", "bias ratio of objects (GloVe)"),
}
# DBAC, Table 3: omega_H, LIC_H (BA_H and DPA_H are 0.50 throughout).
PUBLISHED = {"C1": (0.64, 0.65), "C2": (0.73, 0.60), "C3": (0.80, 0.60), "C4": (0.89, 0.72)}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The numbers of people, of every metric on every level."""
    rows = pd.concat(
        [
            sweep(
                name,
                outputs,
                "experiment=language_bias",
                f"dataset.of.root={data / 'lic' / 'bias_data'}",
                f"dataset.imbalance={level}",
                "metric=" + ",".join(PARTS),
                "seeds=10",
                "logger=csv",
            )
            for level, name in LEVELS.items()
        ]
    )
    wanted = [(metric, part) for metric, (part, _) in PARTS.items()]
    return rows[[own in wanted for own in zip(rows["metric"], rows["part"], strict=True)]]


def main(arguments: list[str]) -> None:
    rows = rows_of(HERE, run, arguments)
    lines = {}
    for metric, (part, title) in PARTS.items():
        own = rows[(rows["metric"] == metric) & (rows["part"] == part)].set_index("study")
        lines[f"`{metric}`: {title}"] = {level: cell(own.loc[level]) for level in LEVELS.values()}
    found = pd.DataFrame(lines).T.rename_axis("people's captions")
    printed = pd.DataFrame(PUBLISHED, index=["omega_H A→T", "LIC_H"]).rename_axis("DBAC, Table 3")
    write_results(
        HERE,
        {
            "Every metric on C1 to C4 (per cent; 95 % intervals)": markdown(found),
            "As printed": markdown(printed),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1:])
