"""The readings of DBAC with contextual alignment: which conclusions change?

Usage: python -m experiments.dbac_readings.contextual [DATA_ROOT [OUTPUTS]]

With DATA_ROOT everything is computed and contextual_rows.csv is written; without it, the tables are
made from that and from rows.csv, which has constant alignment. Needs real GloVe (extra
``offline-models``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pandas as pd

from bias_pipeline.metrics.functional.dbac import AGGREGATES, PRIORS
from experiments.dbac_readings.study import (
    CHEAPER,
    DIRECTIONS,
    HERE,
    SCORINGS,
    readings,
    sign_table,
)
from experiments.study import HOLD_OUT_TASKS, lic_data, markdown, read_rows, sweep, write_page

ROWS, PAGE = HERE / "contextual_rows.csv", HERE / "CONTEXTUAL.md"
ATTRIBUTES = ("gender", "race")
ALIGNMENT = ("alignment=contextual", "alignment.vectors=glove", "alignment.delta=0.4")
READING = ["attribute", "captioner", "direction", "aggregate", "prior", "scoring"]


def run(data: Path, outputs: Path) -> Iterator[pd.DataFrame]:
    """The rows of each sweep; only the first sweep trains attackers."""
    common = ["metric=dbac", *lic_data(data), *CHEAPER]
    common += HOLD_OUT_TASKS
    common += ["logger=csv", "captioner=all", *ALIGNMENT]
    forms = {f"{way}:{prior}" for way, prior in product(DIRECTIONS, PRIORS)}
    for name, aggregate, scoring in product(ATTRIBUTES, AGGREGATES, SCORINGS):
        words = [f"attribute={name}", f"metric.aggregate={aggregate}", f"scoring={scoring}"]
        rows = sweep(f"{name} {aggregate} {scoring}", outputs, *words, *common)
        yield rows[rows["part"].isin(forms)].assign(aggregate=aggregate)


def changes(constant: pd.DataFrame, contextual: pd.DataFrame) -> pd.DataFrame:
    """For every attribute and direction, how many signs differ, and by how much scores differ."""
    both = constant.merge(contextual, on=READING, suffixes=("", " contextual"))
    lines = {}
    for (attribute, direction), group in both.groupby(["attribute", "direction"]):
        opposite = {"+": "-", "-": "+"}
        turned = group["sign"].map(opposite) == group["sign contextual"]
        apart = 100 * (group["value contextual"] - group["value"])
        order = [
            block["value"].corr(block["value contextual"], method="spearman")
            for _, block in group.groupby(["aggregate", "prior", "scoring"])
        ]
        lines[f"{attribute}, {DIRECTIONS[str(direction)]}"] = {
            "scores": str(len(group)),
            "another sign": str((group["sign"] != group["sign contextual"]).sum()),
            "the opposite sign": str(turned.sum()),
            "mean change": apart.mean(),
            "mean size of change": apart.abs().mean(),
            "order kept (mean Spearman)": sum(order) / len(order),
        }
    return pd.DataFrame(lines).T.rename_axis("changes in points")


def write(constant: pd.DataFrame, contextual: pd.DataFrame) -> None:
    """Write the tables."""
    by_alignment = {
        name: readings(rows) for name, rows in (("constant", constant), ("", contextual))
    }
    same = by_alignment["constant"]["encoder"].eq("ngram") & by_alignment["constant"]["masking"].eq(
        "attribute"
    )
    tables = {"What moves": changes(by_alignment["constant"][same], by_alignment[""])}
    for attribute in ATTRIBUTES:
        tables[f"{attribute}: conclusions under every reading, contextual alignment"] = sign_table(
            by_alignment[""], attribute
        )
    texts = {title: markdown(table) for title, table in tables.items()}
    write_page(PAGE, "Contextual alignment", __file__, texts)


def main(data: str | None = None, outputs: str = "outputs/dbac_contextual") -> None:
    if data is not None:
        rows = pd.concat(run(Path(data), Path(outputs)), ignore_index=True)
        columns = [*READING[:2], *READING[3:4], "encoder", "masking", "scoring", "part", "metric"]
        numbers = ["metric_version", "run_id", "value", "ci_low", "ci_high"]
        rows[[*columns, *numbers]].to_csv(ROWS, index=False, float_format="%.5g")
    write(read_rows(HERE / "rows.csv"), read_rows(ROWS))


if __name__ == "__main__":
    main(*sys.argv[1:])
