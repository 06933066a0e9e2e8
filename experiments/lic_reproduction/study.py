"""LIC compared with RELIC's tables, the effect of each repair of the protocol, and RELIC's claims.

Usage: python -m experiments.lic_reproduction.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT all cells are run and rows.csv is written; without it, tables and figure are made
from the rows.csv that is there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.claims.judge import judge_claims
from experiments.study import (
    HOLD_OUT,
    agreement,
    markdown,
    part,
    printed_table,
    pyplot,
    rows_of,
    save_figure,
    sweep,
    write_results,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent

# What each repair changes, given as overrides of the published protocol, one at a time.
REPAIRS = {
    "published protocol": [],
    "lower-case both sides": ["text.lowercase=[model,human]"],
    "keep a literal <unk> whole": ["text.keep_unknown=true"],
    "one <unk> token instead of three": ["alignment.replacement=['<unk>']"],
    "vocabulary of the captions scored": ["alignment.vocabulary=captions"],
    "our completed word list": ["masking=attribute"],
    "one split for all captioners": ["split.order=hashed"],
}
RACE = {
    "as published": ["experiment=relic_race"],
    "vocabulary of the captions scored": ["experiment=relic_race", "alignment.vocabulary=captions"],
    "published vocabulary on both sides": [
        "experiment=relic_race",
        "alignment.sides=[model,human]",
    ],
    "no alignment": ["dataset=lic", "attribute=race", "masking=none", "alignment=none"],
    # No published vocabulary contains the mask; if it were aligned away, only one side would keep
    # it.
    "race words masked": ["experiment=relic_race", "masking=lic", "+alignment.keep=[raceword]"],
    "repaired default": ["dataset=lic", "attribute=race"],
}
# Three convex attackers, for a claim on robustness.
ATTACKERS = {
    "words and pairs": [],
    "words alone": ["encoder.order=1"],
    "weaker penalty": ["probe.inverse_penalty=1"],
}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    common = [f"dataset.root={data / 'lic' / 'bias_data'}", "captioner=all", "seeds=10", *HOLD_OUT]
    cells = {"gender": ["dataset=lic"], "gender leakage": ["dataset=lic", "metric=leakage"]}
    cells |= {f"repair: {name}": ["experiment=relic_gender", *o] for name, o in REPAIRS.items()}
    cells |= {f"race: {name}": o for name, o in RACE.items()}
    cells |= {f"attacker: {name}": ["dataset=lic", *o] for name, o in ATTACKERS.items()}
    # The published run has the same options as a separate cell with another encoder.
    rows = [
        sweep(name, outputs, *overrides, "encoder=ngram", *common)
        for name, overrides in cells.items()
    ]
    return pd.concat(rows, ignore_index=True)


def gender_table(rows: pd.DataFrame) -> pd.DataFrame:
    printed = printed_table("relic", "1", "LIC_LSTM")
    columns = {
        "LIC_M": part(rows, "gender", "model"),
        "LIC_M (RELIC)": printed["lic_m"],
        "LIC_D": part(rows, "gender", "human"),
        "LIC_D (RELIC)": printed["lic_d"],
        "LIC": part(rows, "gender", "score"),
        "LIC (RELIC)": printed["lic"],
        "from accuracy": part(rows, "gender", "lic_from:accuracy"),
        "from confidence": part(rows, "gender", "lic_from:confidence"),
        "Leakage": part(rows, "gender leakage", "score"),
    }
    return pd.DataFrame(columns).dropna(subset=["LIC_M"])


def agreement_table(rows: pd.DataFrame) -> pd.DataFrame:
    columns = {}
    for attribute, study, table in (("gender", "gender", "1"), ("race", "race: as published", "2")):
        printed = printed_table("relic", table, "LIC_LSTM")
        for name, column in (("model", "lic_m"), ("human", "lic_d"), ("score", "lic")):
            scores = part(rows, study, name)
            columns[f"{attribute} {column}"] = agreement(scores, printed.loc[scores.index, column])
    return pd.DataFrame(columns).T.rename_axis("against RELIC's LSTM")


def repair_table(rows: pd.DataFrame, prefix: str) -> pd.DataFrame:
    lines = {}
    for study in rows["study"].unique():
        if study.startswith(prefix):
            values = {name: part(rows, study, name) for name in ("model", "human", "score")}
            lines[study.removeprefix(prefix)] = {
                "LIC_M": values["model"].mean(),
                "LIC_D": values["human"].mean(),
                "LIC": values["score"].mean(),
                "LIC lowest": values["score"].min(),
                "LIC highest": values["score"].max(),
            }
    return pd.DataFrame(lines).T.rename_axis("mean over captioners")


def claims() -> pd.DataFrame:
    """RELIC's own claims, from the register that all studies share."""
    lines = [x for x in judge_claims(HERE.parent, "RELIC") if x.claim[0] in "1234"]
    cells = [(x.claim, x.where, x.what, x.verdict.finding, x.verdict.follows) for x in lines]
    columns = ["claim", "where", "what was compared", "finding", "follows"]
    return pd.DataFrame(cells, columns=columns)


def figure(rows: pd.DataFrame, path: Path) -> None:
    """Ours with intervals, and RELIC's printed values, one line per captioner."""
    plt = pyplot("lic_reproduction")
    selected = rows[(rows["study"] == "gender") & (rows["part"] == "score")]
    order = selected.sort_values("value")["captioner"].tolist()
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    _panel(axes[0], rows, order, "model", "lic_m", "LIC_M: all labelled images")
    _panel(axes[1], rows, order, "score", "lic", "LIC = LIC_M − LIC_D: images with human captions")
    axes[1].axvline(0, color="0.5", linewidth=1)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    save_figure(fig, path)


def _panel(
    ax: Axes, rows: pd.DataFrame, order: list[str], name: str, column: str, title: str
) -> None:
    scores = rows[(rows["study"] == "gender") & (rows["part"] == name)].set_index("captioner")
    value, low, high = (100 * scores.loc[order, c] for c in ("value", "ci_low", "ci_high"))
    printed = printed_table("relic", "1", "LIC_LSTM").loc[order, column]
    ax.errorbar(
        value, order, xerr=[value - low, high - value], fmt="o", color="#1f5fa8", capsize=3,
        label="this package, n-gram attacker, ten seeds, 95 % interval",
    )  # fmt: skip
    ax.plot(printed, order, "D", mfc="white", mec="#c8590b", label="RELIC Table 1, LSTM attacker")
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("per cent")


def publish(rows: pd.DataFrame) -> None:
    """Write tables and figure."""
    tables = {
        "Gender, ten seeds, n-gram attacker (per cent)": gender_table(rows),
        "Agreement with RELIC's LSTM columns": agreement_table(rows),
        "Gender: what each repair of the published protocol changes (per cent)": repair_table(
            rows, "repair: "
        ),
        "Race: what masking and alignment change (per cent)": repair_table(rows, "race: "),
        "RELIC's claims": claims().set_index("claim"),
    }
    write_results(HERE, {title: markdown(table) for title, table in tables.items()})
    figure(rows, HERE / "gender.svg")


if __name__ == "__main__":
    publish(rows_of(HERE, run, sys.argv[1:]))
