"""DBAC on the real captioners under every reading: which conclusions depend on the reading?

Usage: python -m experiments.dbac_readings.study DATA_ROOT [OUTPUTS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pandas as pd

from bias_pipeline.metrics.functional.dbac import AGGREGATES, PRIORS
from experiments.study import HOLD_OUT_TASKS, lic_data, markdown, sweep, write_results

HERE = Path(__file__).resolve().parent
SCORINGS = ("inverse_ce", "accuracy")
ATTRIBUTES = ("gender", "race", "race_unsure")
DIRECTIONS = {"a_to_t": "A→T", "t_to_a": "T→A"}
# Two human caption positions and 100 resamples keep the study under half an hour on two cores.
CHEAPER = ("seeds=3", "metric.positions=2", "stats.resamples=100")
# Columns that are equal in all rows.
SAME = (
    "dataset", "alignment", "p_value", "n_seeds", "seeds",
)  # fmt: skip
NEURAL = ("sat", "transformer", "oscar")
DEFAULT = "weighted"


def run(data: Path, outputs: Path) -> Iterator[pd.DataFrame]:
    """Rows of one sweep after the other, the cheapest first."""
    common = ["metric=dbac", *lic_data(data), *CHEAPER]
    common += HOLD_OUT_TASKS
    common.append("logger=csv")
    for name, aggregate, scoring in product(ATTRIBUTES, AGGREGATES, SCORINGS):
        words = [f"attribute={name}", f"metric.aggregate={aggregate}", f"scoring={scoring}"]
        rows = sweep(f"{name} {aggregate} {scoring}", outputs, "captioner=all", *words, *common)
        yield rows.assign(aggregate=aggregate)
    for masking in ("tasks_only", "rest_only"):
        rows_of_masking = sweep(masking, outputs, "captioner=all", f"masking={masking}", *common)
        yield rows_of_masking.assign(aggregate=DEFAULT)
    attribute = "attribute=" + ",".join(ATTRIBUTES[:2])
    for captioner in NEURAL:
        words = ["encoder=lstm", f"captioner={captioner}", attribute]
        yield sweep(f"lstm {captioner}", outputs, *words, *common).assign(aggregate=DEFAULT)


def readings(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per cell, direction and prior: the score, its interval and its sign."""
    frames = []
    for direction, prior in product(DIRECTIONS, PRIORS):
        selected = rows[rows["part"] == f"{direction}:{prior}"]
        frames.append(selected.assign(direction=direction, prior=prior))
    table = pd.concat(frames)
    table["sign"] = "0"
    table.loc[table["ci_low"] > 0, "sign"] = "+"
    table.loc[table["ci_high"] < 0, "sign"] = "-"
    return table


def sign_table(table: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """For every captioner and direction, how many readings give +, 0 and -."""
    selected = table[(table["encoder"] == "ngram") & (table["attribute"] == attribute)]
    selected = selected[selected["masking"] == "attribute"]
    counts = (
        selected.groupby(["captioner", "direction"])["sign"].value_counts().unstack(fill_value=0)
    )
    counts = counts.reindex(columns=["+", "0", "-"], fill_value=0)
    ends = selected.groupby(["captioner", "direction"])["value"].agg(["min", "max"]) * 100
    survives = counts.apply(lambda line: _survivor(line), axis=1).rename("under every reading")
    joined = counts.join(ends).join(survives).reset_index()
    joined["direction"] = joined["direction"].map(DIRECTIONS)
    return joined.set_index("captioner")


def _survivor(line: pd.Series) -> str:
    total = line.sum()
    names = {"+": "amplified", "-": "reduced", "0": "no sign"}
    return next((names[s] for s in names if line[s] == total), "depends")


def reading_table(table: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """For every reading, the mean over captioners and how many are + and - in each direction."""
    selected = table[(table["encoder"] == "ngram") & (table["masking"] == "attribute")]
    selected = selected[selected["attribute"] == attribute]
    lines = {}
    for key, block in selected.groupby(["aggregate", "prior", "scoring"], sort=False):
        line: dict[str, object] = {}
        for direction, arrow in DIRECTIONS.items():
            values = block[block["direction"] == direction]
            line[arrow] = 100 * values["value"].mean()
            line[f"{arrow} + / 0 / -"] = _signs(values["sign"])
        lines[", ".join(key)] = line
    return pd.DataFrame(lines).T.rename_axis("aggregate, prior, Q")


def _signs(signs: pd.Series) -> str:
    if not len(signs):
        return "cannot be scored"
    return " / ".join(str(sum(signs == s)) for s in ("+", "0", "-"))


def conclusion_table(table: pd.DataFrame) -> pd.DataFrame:
    """The paper's printed conclusions (section 6), gender, under each reading of ours."""
    selected = table[(table["encoder"] == "ngram") & (table["masking"] == "attribute")]
    selected = selected[selected["attribute"] == "gender"]
    n_readings = selected.groupby(["aggregate", "prior", "scoring"]).ngroups
    all_reduced = most_raised = 0
    for _, block in selected.groupby(["aggregate", "prior", "scoring"]):
        reduced = block[block["direction"] == "a_to_t"]["sign"] == "-"
        raised = block[block["direction"] == "t_to_a"]["value"] > 0
        all_reduced += reduced.all()
        most_raised += raised.mean() > 0.5
    lines = {
        "all captioners reduce A→T": f"{all_reduced} of {n_readings} readings",
        "most captioners raise T→A": f"{most_raised} of {n_readings} readings",
        "Equalizer against NIC: T→A lower, A→T higher": _equalizer(selected),
    }
    return pd.DataFrame({"follows under": lines}).rename_axis("printed conclusion (gender)")


def _equalizer(table: pd.DataFrame) -> str:
    if "nic_equalizer" not in set(table["captioner"]):
        return "not tested: its captions are not among the files here"
    wide = table.pivot_table(
        index=["aggregate", "prior", "scoring", "direction"], columns="captioner", values="value"
    )
    gap = (wide["nic_equalizer"] - wide["nic"]).unstack("direction")
    follows = (gap["t_to_a"] < 0) & (gap["a_to_t"] > 0)
    return f"{follows.sum()} of {len(follows)} readings"


def attacker_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The default reading under both attackers."""
    selected = rows[(rows["aggregate"] == DEFAULT) & (rows["scoring"] == "inverse_ce")]
    selected = selected[(selected["masking"] == "attribute") & selected["captioner"].isin(NEURAL)]
    selected = selected[selected["part"].isin(DIRECTIONS)]
    wide = selected.pivot_table(
        index=["attribute", "captioner"], columns=["part", "encoder"], values="value"
    )
    both = wide["a_to_t"].notna().all(axis=1)  # captioners that both attackers have scored
    wide = (100 * wide[both]).reset_index()
    wide.columns = [" ".join(filter(None, (DIRECTIONS.get(a, a), b))) for a, b in wide.columns]
    return wide.set_index("attribute")


def assumption_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Quality of A→T attackers that see task words only, the rest only, and all."""
    names = {
        "tasks_only": "task words only",
        "rest_only": "the rest only",
        "attribute": "all words",
    }
    selected = rows[(rows["aggregate"] == DEFAULT) & (rows["scoring"] == "inverse_ce")]
    selected = selected[(selected["encoder"] == "ngram") & (selected["attribute"] == "gender")]
    lines = {}
    for masking, name in names.items():
        of_masking = selected[selected["masking"] == masking]
        quality = of_masking.set_index("part")["value"].groupby(level=0).mean()
        lines[name] = {side: quality[f"a_to_t:quality:{side}"] for side in ("model", "human")}
        lines["prevalence alone"] = dict.fromkeys(
            ("model", "human"), quality["a_to_t:quality:baseline"]
        )
    return pd.DataFrame(lines).T.rename_axis("attackers see (Q = 1 / cross-entropy, gender)")


def write(rows: pd.DataFrame) -> None:
    """Write the rows and the tables made of them."""
    # Pairs and tasks would make the file tens of thousands of lines long. The values of a single
    # side do not depend on how pairs are combined, so they are stored once.
    forms = (*PRIORS, "priors")
    scores = [*DIRECTIONS, *(f"{d}:{form}" for d, form in product(DIRECTIONS, forms))]
    named = rows["part"].str.contains(":quality:|:prior:|:mentions:")
    once = named & (rows["aggregate"] == DEFAULT)
    rows = rows[once | rows["part"].isin(scores)]
    rows.drop(columns=[*SAME, "study"]).to_csv(HERE / "rows.csv", index=False, float_format="%.5g")
    table = readings(rows)
    tables = {"The paper's conclusions under our readings": conclusion_table(table)}
    for attribute in sorted(set(rows["attribute"])):
        tables[f"{attribute}: every reading, n-gram (per cent)"] = reading_table(table, attribute)
        tables[f"{attribute}: conclusions under every reading"] = sign_table(table, attribute)
    if "lstm" in set(rows["encoder"]):
        tables["Two attackers, default reading (per cent)"] = attacker_table(rows)
    if {"tasks_only", "rest_only"} <= set(rows["masking"]):
        tables["Does the attacker use more than the tasks?"] = assumption_table(rows)
    write_results(HERE, {title: markdown(table) for title, table in tables.items()})


def main(data: str, outputs: str = "outputs/dbac_readings") -> None:
    frames: list[pd.DataFrame] = []
    for rows in run(Path(data), Path(outputs)):
        frames.append(rows)
        write(pd.concat(frames, ignore_index=True))  # a stopped study keeps its rows


if __name__ == "__main__":
    main(*sys.argv[1:])
