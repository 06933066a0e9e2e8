"""LIC for age, compared with RELIC's Tables 3 and 4, and the effect of its word list and alignment.

Usage: python -m experiments.age.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT all cells are run and rows.csv is written; without it, the tables are made from the
rows.csv that is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.study import HOLD_OUT, markdown, part, printed_table, rows_of, sweep, write_results

HERE = Path(__file__).resolve().parent
CAPTIONERS = ("sat", "oscar", "nic_plus")
ENCODERS = ("LSTM", "BERT_FT", "BERT_PRE")

PUBLISHED = "experiment=relic_age"
REPAIRED = ("dataset=relic", "attribute=age")
# RELIC's age list masks man and woman, but none of these.
PRONOUNS = "he,him,his,himself,she,her,hers,herself"
WITH_PRONOUNS = f"masking.words=['${{attribute.presets.lic.words}}',{PRONOUNS}]"
LISTS = {
    "RELIC's list": ("masking=lic",),
    "RELIC's list and pronouns": ("masking=lic", WITH_PRONOUNS),
    "our list of age words": ("masking=attribute",),
}
ALIGNMENTS = ("none", "constant", "top_n")
TABLES = {"constant": "3", "top_n": "4"}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """All cells of the study."""
    cells: dict[str, tuple[str, ...]] = {}
    for alignment in TABLES:
        chosen = f"alignment={alignment}"
        vocabulary = "alignment.vocabulary=captions"
        cells[f"published: {alignment}"] = (PUBLISHED, chosen)
        cells[f"published, pronouns masked: {alignment}"] = (PUBLISHED, chosen, WITH_PRONOUNS)
        cells[f"published, vocabulary of the captions: {alignment}"] = (
            PUBLISHED,
            chosen,
            vocabulary,
        )
    for name, masking in LISTS.items():
        for alignment in ALIGNMENTS:
            cells[f"{name}: {alignment}"] = (*REPAIRED, *masking, f"alignment={alignment}")
    cells["published, mask aligned away: constant"] = (PUBLISHED, "alignment.keep=[]")
    cells["words alone: constant"] = (PUBLISHED, "encoder.order=1")
    cells["weaker penalty: constant"] = (PUBLISHED, "probe.inverse_penalty=1")
    common = (f"dataset.root={data / 'relic'}", "captioner=all", "encoder=ngram", "seeds=10")
    common += HOLD_OUT
    rows = [sweep(name, outputs, *overrides, *common) for name, overrides in cells.items()]
    return pd.concat(rows, ignore_index=True)


def beside_relic(rows: pd.DataFrame, alignment: str) -> pd.DataFrame:
    """Our n-gram attacker and the three attackers of RELIC, under its protocol."""
    study = f"published: {alignment}"
    columns = {f"{c} (ours)": part(rows, study, p) for c, p in _SIDES.items()}
    for encoder in ENCODERS:
        printed = printed_table("relic", TABLES[alignment], f"LIC_{encoder}")
        for column in _SIDES if encoder == "LSTM" else ("LIC",):
            columns[f"{column} ({encoder})"] = printed[column.lower()].loc[list(CAPTIONERS)]
    return pd.DataFrame(columns).loc[list(CAPTIONERS)].rename_axis("captioner")


_SIDES = {"LIC_M": "model", "LIC_D": "human", "LIC": "score"}


def variants(rows: pd.DataFrame) -> pd.DataFrame:
    """Both sides and the score of every cell, one line per variant."""
    lines = {}
    for study in rows["study"].unique():
        lines[study] = {
            f"{name} {c}": _interval(rows, study, c) if name == "LIC" else _value(rows, study, c, p)
            for c in CAPTIONERS
            for name, p in _SIDES.items()
        }
    return pd.DataFrame(lines).T.rename_axis("variant")


def _value(rows: pd.DataFrame, study: str, captioner: str, name: str) -> float:
    return float(part(rows, study, name)[captioner])


def _interval(rows: pd.DataFrame, study: str, captioner: str) -> str:
    scores = rows[(rows["study"] == study) & (rows["part"] == "score")].set_index("captioner")
    value, low, high = (
        100 * float(scores.loc[captioner, c]) for c in ("value", "ci_low", "ci_high")
    )
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def signs(rows: pd.DataFrame) -> pd.DataFrame:
    """The sign of LIC for each captioner, by attacker and variant; for ours if significant."""
    lines: dict[str, dict[str, str]] = {}
    for table in TABLES.values():
        for encoder in ENCODERS:
            printed = printed_table("relic", table, f"LIC_{encoder}")["lic"]
            lines[f"RELIC Table {table}, {encoder}"] = {c: _sign(printed[c]) for c in CAPTIONERS}
    scores = rows[rows["part"] == "score"]
    for study, group in scores.groupby("study", sort=False):
        lines[f"ours, {study}"] = {
            row.captioner: _direction(row.ci_low, row.ci_high) for row in group.itertuples()
        }
    return pd.DataFrame(lines).T.rename_axis("attacker or variant")


def _sign(value: float) -> str:
    return "+" if value > 0 else "-" if value < 0 else "0"


def _direction(low: float, high: float) -> str:
    return "+" if low > 0 else "-" if high < 0 else "≈"


def write(rows: pd.DataFrame) -> None:
    """The tables."""
    tables = {
        f"Alignment `{alignment}`, beside RELIC Table {table} (per cent)": markdown(
            beside_relic(rows, alignment), 1
        )
        for alignment, table in TABLES.items()
    }
    tables["What the list, alignment and attacker change (per cent)"] = markdown(variants(rows), 1)
    tables["Sign of LIC"] = (
        "RELIC prints no interval of LIC: its sign is that of the printed mean. Ours is ≈ where "
        f"the 95 % interval includes 0.\n\n{markdown(signs(rows))}"
    )
    write_results(HERE, tables)


if __name__ == "__main__":
    write(rows_of(HERE, run, sys.argv[1:]))
