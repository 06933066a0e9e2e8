"""What contextual alignment replaces in real captions, and how much of them remains.

Usage: python -m experiments.alignment.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT everything is computed and rows.csv is written; without it, the tables are made from
the rows.csv that is there. METEOR needs Java and the extra ``quality``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bias_pipeline.language.caption_words import DELTAS, likeness, reach
from bias_pipeline.run import compose
from experiments.study import (
    CAPTIONERS,
    HOLD_OUT,
    HOLD_OUT_TASKS,
    lic_data,
    markdown,
    rows_of,
    sweep,
    write_results,
)

HERE = Path(__file__).resolve().parent
ATTRIBUTES = ("gender", "race")
ALIGNMENTS = ("none", "constant", "contextual")
N_METEOR = 500
TITLES = {
    "reach": "Share of words to be replaced that have a near one in GloVe, by delta (per cent)",
    "meteor": f"METEOR of {N_METEOR} aligned human captions with their originals (x 100)",
    "lic": "LIC of human captions (LIC_D), n-gram attackers, three seeds (per cent)",
    "omega_a_to_t": "omega of human captions, A→T, n-gram attackers, three seeds",
    "omega_t_to_a": "omega of human captions, T→A, n-gram attackers, three seeds",
}
# Metric to its numbers of human captions and the table of each, and to further settings.
PEOPLE = {
    "lic": ({"human": "lic"}, ("metric.sides=[human]",)),
    "dbac": ({f"{way}:quality:human": f"omega_{way}" for way in ("a_to_t", "t_to_a")}, ()),
}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """One row per number: table, attribute, captioner, column, value."""
    lines = [line for name in ATTRIBUTES for line in _untrained_lines(data, name)]
    lines += [
        line
        for name in ATTRIBUTES
        for metric in PEOPLE
        for line in _people(data, outputs, name, metric)
    ]
    return pd.DataFrame(lines, columns=["table", "attribute", "captioner", "column", "value"])


def _words(data: Path, attribute: str) -> list[str]:
    return [*lic_data(data), f"attribute={attribute}"]


def _untrained_lines(data: Path, attribute: str) -> list[tuple[str, str, str, str, float]]:
    lines = []
    for captioner in CAPTIONERS:
        words = [*_words(data, attribute), f"captioner={captioner}", "alignment=contextual"]
        cell = compose.cell(words)
        corpus = cell.build("masking")(cell.build("text")(cell.corpus()))
        align = cell.build("alignment")
        reached, like = reach(corpus, align), likeness(corpus, align, N_METEOR)
        near = dict(zip(map(str, DELTAS), (100 * reached.shares).tolist(), strict=True))
        reach_columns = {"words": reached.words, **near, "delta of 60 %": reached.enough}
        meteor_columns = {"constant": 100 * like.constant, "contextual": 100 * like.contextual}
        lines += [("reach", attribute, captioner, *item) for item in reach_columns.items()]
        lines += [("meteor", attribute, captioner, *item) for item in meteor_columns.items()]
    return lines


def _people(
    data: Path, outputs: Path, attribute: str, metric: str
) -> list[tuple[str, str, str, str, float]]:
    """Attackers' scores on human captions, by alignment."""
    parts, further = PEOPLE[metric]
    rows = sweep(
        f"{metric} {attribute}",
        outputs,
        *_words(data, attribute),
        f"metric={metric}",
        *(HOLD_OUT if metric == "lic" else HOLD_OUT_TASKS),
        *further,
        "captioner=" + ",".join(CAPTIONERS),
        "alignment=" + ",".join(ALIGNMENTS),
        "seeds=3",
        "logger=csv",
    )
    scale = {"fraction": 100}
    return [
        (parts[line.part], attribute, line.captioner, line.alignment,
         scale.get(line.unit, 1) * line.value)
        for line in rows[rows["part"].isin(parts)].dropna(subset="value").itertuples()
    ]  # fmt: skip


def main(arguments: list[str]) -> None:
    rows = rows_of(HERE, run, arguments)
    tables = {}
    for name, title in TITLES.items():
        for attribute in ATTRIBUTES:
            selected = rows[(rows["table"] == name) & (rows["attribute"] == attribute)]
            if selected.empty:  # captions do not name race, so task to attribute cannot be scored
                continue
            table = selected.pivot_table(
                index="captioner", columns="column", values="value", sort=False
            )
            table = table.reindex(list(CAPTIONERS)).rename_axis("captioner")
            if "words" in table:
                table["words"] = table["words"].astype(int)
            if "contextual" in table:
                gain = 100 * (table["contextual"] / table["constant"] - 1)
                table["change (%)"] = gain
                table.loc["mean"] = table.mean()
            tables[f"{title}, {attribute}"] = markdown(table)
    write_results(HERE, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
