"""What retrieval fairness says of CLIPs of known bias, and what debiasing gives and costs.

Usage: python -m experiments.vl_bias.study [OUTPUTS]

With OUTPUTS, a folder for runs, the CLIPs are fitted and rows.csv is written (nine minutes on two
busy cores); without it, tables and figure are made from the rows.csv that is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bias_pipeline.scenes.activities import ACTIVITIES
from bias_pipeline.scenes.slots import shares, table_by_group, typical, world_tables
from experiments.study import cell, markdown, rows_at, sweep, write_results
from experiments.vl_bias.figures import tradeoff_figure, tradeoffs

HERE = Path(__file__).resolve().parent
METRIC = ("metric=retrieval_fairness", "encoder=clip", "dataset=scenes", "logger=csv")
ASSOCIATIONS = (0.0, 0.5, 1.0)
SIZED, SIZES = ("subspace", "zero_neuron", "mean_neuron", "clip_clip"), (1, 2, 5, 10, 20, 40)
PARTS = ("score", "null", "recall:image@10", "recall:text@10")
BESIDE = (
    "other:age",
    "other:gender_age",
    "attacker:linear",
    "attacker:kernel",
    "attacker:text:linear",
    "attacker:text:kernel",
)


def run(outputs: Path) -> pd.DataFrame:
    """The rows of all sweeps."""
    dials = "encoder.association=" + ",".join(f"{strength:g}" for strength in ASSOCIATIONS)
    sizes = "debias.k=" + ",".join(map(str, SIZES))
    frames = [
        _with_men(sweep("association", outputs, *METRIC, dials), outputs),
        sweep("size", outputs, *METRIC, f"debias={','.join(SIZED)}", sizes),
        sweep("none", outputs, *METRIC, "debias=none,mean_difference,erasure"),
    ]
    rows = pd.concat(frames, ignore_index=True)
    concepts = (rows["study"] == "association") & rows["part"].str.startswith("concept:")
    parts = (*PARTS, *BESIDE, *(f"null:{name}" for name in BESIDE))
    return rows[rows["part"].isin(parts) | concepts]


def share_of_men(association: float) -> dict[str, float]:
    """P(male | task) in the captions that a CLIP was fitted to."""
    world = world_tables()["activity"]
    typical_share = (1 - association) * world + association * typical("gender", world)
    joint = shares("gender")[:, None] * table_by_group("gender", typical_share)
    men = joint[0] / joint.sum(axis=0)
    return {activity.name: float(share) for activity, share in zip(ACTIVITIES, men, strict=True)}


def _with_men(rows: pd.DataFrame, outputs: Path) -> pd.DataFrame:
    """The rows with the share of men among the pictures that each concept retrieves."""
    tables = [
        pd.read_csv(outputs / name / "concepts.csv").assign(run_id=name)
        for name in rows["run_id"].unique()
    ]
    shown = pd.concat(tables)
    shown["part"] = "concept:" + shown["concept"]
    men = shown[["run_id", "part", "share:male"]].rename(columns={"share:male": "men"})
    return rows.merge(men, on=["run_id", "part"], how="left")


def association_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Score, and whether concepts retrieve the group that they were planted with."""
    lines = {}
    for dial in ASSOCIATIONS:
        selected = rows[(rows["study"] == "association") & (rows["encoder.association"] == dial)]
        concepts = selected[selected["part"].str.startswith("concept:")].sort_values("value")
        truth, men = share_of_men(dial), float(shares("gender")[0])
        planted = concepts["part"].str.removeprefix("concept:").map(truth)
        right = (planted > men) == (concepts["men"] > men)
        lines[dial] = {
            **_cells(selected, ("score", "null")),
            "right group, ten least fair": right.head(10).sum(),
            "right group, all 40": right.sum(),
            "Pearson of shares of men": f"{planted.corr(concepts['men']):.2f}",
        }
    return pd.DataFrame(lines).T.rename_axis("association")


def price_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Fairness and recall of every debiasing."""
    selected = rows[rows["study"].isin(["size", "none"])].copy()
    selected["debias.k"] = selected["debias.k"].fillna(0).astype(int)
    best = tradeoffs(rows).set_index(["debias", "k"])["pareto"]
    lines = {
        f"{name}, k = {k}" if k else str(name): {
            **_cells(group, PARTS[:1] + PARTS[2:]),
            "none has more of both": "yes" if best[name, k] else "",
            **_cells(group, BESIDE),
        }
        for (name, k), group in selected.groupby(["debias", "debias.k"], sort=False)
    }
    return pd.DataFrame(lines).T.rename_axis("debias")


def _cells(rows: pd.DataFrame, parts: tuple[str, ...]) -> dict[str, str]:
    scores = rows.set_index("part")
    return {name: cell(scores.loc[name]) for name in parts}


def write(rows: pd.DataFrame) -> None:
    """Write the tables and the figure."""
    tables = {
        "CLIPs of known association (per cent)": association_table(rows),
        "Fairness and its cost, association 0.5 (per cent)": price_table(rows),
    }
    tradeoff_figure(rows, HERE / "tradeoff.svg")
    write_results(HERE, {title: markdown(table) for title, table in tables.items()})


if __name__ == "__main__":
    write(rows_at(HERE / "rows.csv", run, sys.argv[1:]))
