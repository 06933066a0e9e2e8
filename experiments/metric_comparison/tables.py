"""The tables of the study, from its rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from experiments.study import beyond_chance, cell, markdown, printed_table, rank_agreement

# Column to (study, metric, part): the headlines to compare.
HEADLINES = {
    "LIC": ("attackers", "lic", "score"),
    "Leakage": ("attackers", "leakage", "score"),
    "Ratio": ("counting", "gender_ratio", "model"),
    "Error": ("counting", "gender_error", "score"),
    "BA_MALS": ("counting", "ba_mals", "score"),
    "BA→ A→T": ("counting", "ba_directional", "a_to_t"),
    "BA→ T→A": ("counting", "ba_directional", "t_to_a"),
    "DBAC A→T": ("dbac", "dbac", "a_to_t"),
    "DBAC T→A": ("dbac", "dbac", "t_to_a"),
    "DPA A→T": ("dpa", "dpa", "a_to_t"),
    "DPA T→A": ("dpa", "dpa", "t_to_a"),
    "CIDEr-D": ("counting", "quality", "model"),
}
# Our column to the printed one: paper, table, part, column, and its name here.
PRINTED = {
    "LIC": [
        ("relic", "1", "LIC_LSTM", "lic", "RELIC"),
        ("imagecaptioner2", "3", "", "lic", "Hirota"),
    ],
    "Ratio": [("imagecaptioner2", "3", "", "ratio", "printed")],
    "Error": [("imagecaptioner2", "3", "", "error", "printed")],
}
# The file of nic for each printed column; the other file has no printed value.
NIC = {"LIC": "nic", "Ratio": "nic_st10", "Error": "nic_st10"}
RANKED = "nic_st10"  # ranks use one of the two files of nic
RESAMPLES = 2000


def values(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """A headline of every captioner: value and interval."""
    study, metric, part = HEADLINES[column]
    selected = rows[(rows["study"] == study) & (rows["metric"] == metric) & (rows["part"] == part)]
    return selected.set_index("captioner")[["value", "ci_low", "ci_high", "unit"]]


def table3(rows: pd.DataFrame) -> pd.DataFrame:
    """Every captioner under every metric, with the printed values."""
    columns: dict[str, pd.Series] = {}
    for column in HEADLINES:
        scores = values(rows, column)
        columns[column] = scores.apply(cell, axis=1)
        for paper, table, part, name, called in PRINTED.get(column, []):
            printed = printed_table(paper, table, part)[name]
            own_nic = {NIC[column]: "nic"}
            keys = [own_nic.get(n, "" if n in NIC.values() else n) for n in scores.index]
            printed_cells = [f"{printed[key]:g}" if key in printed else "–" for key in keys]
            columns[f"{column} ({called})"] = pd.Series(printed_cells, scores.index)
    return pd.DataFrame(columns).rename_axis("captioner")


def unfairness(rows: pd.DataFrame) -> pd.DataFrame:
    """Captioners by metrics, to be ranked; lower is fairer (CIDEr-D: worse)."""
    table = pd.DataFrame({column: values(rows, column)["value"] for column in HEADLINES})
    labelled = rows[(rows["metric"] == "gender_ratio") & (rows["part"] == "human")]["value"].iloc[0]
    table["Ratio"] = (table["Ratio"] - labelled).abs()
    return table.drop(index=[name for name in ("nic",) if RANKED in table.index])


def agreement(rows: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau-b of each two metrics, with an interval and the permutation p."""
    table = unfairness(rows)
    result = rank_agreement(table)
    ends = [_interval(rows, one, two, list(table.index)) for one, two in combinations(table, 2)]
    result.insert(1, "within noise", [f"{low:.2f} to {high:.2f}" for low, high in ends])
    return result


def _interval(rows: pd.DataFrame, one: str, two: str, names: list[str]) -> tuple[float, float]:
    """The 95 % range of tau if each value is drawn within its interval.

    It covers noise in these captioners' values, not the choice of captioners.
    """
    generator = np.random.default_rng(0)
    drawn = [_draw_values(rows, column, names, generator) for column in (one, two)]
    taus = [stats.kendalltau(a, b).statistic for a, b in zip(*drawn, strict=True)]
    return float(np.nanquantile(taus, 0.025)), float(np.nanquantile(taus, 0.975))


def _draw_values(
    rows: pd.DataFrame, column: str, names: list[str], generator: np.random.Generator
) -> np.ndarray:
    """(RESAMPLES, captioners) values within their intervals."""
    scores = values(rows, column).loc[names]
    spread = (scores["ci_high"] - scores["ci_low"]).to_numpy() / (2 * 1.96)
    drawn = scores["value"].to_numpy() + spread * generator.normal(size=(RESAMPLES, len(names)))
    if column == "Ratio":
        labels = rows[(rows["metric"] == "gender_ratio") & (rows["part"] == "human")]
        drawn = np.abs(drawn - labels["value"].iloc[0])
    return drawn


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau-b of all metrics."""
    return unfairness(rows).corr(method="kendall").rename_axis("Kendall's tau-b")


def quality(rows: pd.DataFrame) -> pd.DataFrame:
    """How well each captioner describes, in all and by group."""
    selected = rows[(rows["study"] == "counting") & (rows["metric"] == "quality")]
    parts = {
        "CIDEr-D": "model",
        "people": "human",
        "score": "score",
        "male": "group:male",
        "female": "group:female",
        "gap": "gap",
        "gap of CIDEr-D": "gap:model",
        **{f"BLEU-{n}": f"bleu_{n}:model" for n in (1, 4)},
    }
    columns = {
        name: selected[selected["part"] == part].set_index("captioner").apply(cell, axis=1)
        for name, part in parts.items()
    }
    return pd.DataFrame(columns).rename_axis("captioner")


def front(rows: pd.DataFrame) -> pd.DataFrame:
    """For each metric of bias the captioners that no other one beats in it and in CIDEr-D."""
    table = unfairness(rows)
    good = table.pop("CIDEr-D")
    lines = {
        str(column): {"not beaten": ", ".join(n for n in table.index if not _beaten(n, good, bias))}
        for column, bias in table.items()
    }
    return pd.DataFrame(lines).T.rename_axis("CIDEr-D and")


def _beaten(name: str, good: pd.Series, bias: pd.Series) -> bool:
    """Whether some captioner is as good and as fair, and better on one of the two."""
    alike = (good >= good[name]) & (bias <= bias[name])
    better = (good > good[name]) | (bias < bias[name])
    return bool((alike & better).any())


def mentions(rows: pd.DataFrame) -> pd.DataFrame:
    """BA-> A→T and how much captions mention, under each choice of labels."""
    lines = {}
    for study in ("counting", "ba union", "ba each", "people"):
        selected = rows[(rows["study"] == study) & (rows["metric"] == "ba_directional")]
        wide = selected.pivot_table(index="captioner", columns="part", values="value")
        label = {"counting": "objects", "people": "objects"}.get(study, study.removeprefix("ba "))
        for name, line in wide.iterrows():
            lines[(str(name), label)] = {
                "labels": label,
                "A→T, %": 100 * line["a_to_t"],
                "named per caption": line["mentions:model"],
                "labels per image": line["mentions:human"],
            }
    return pd.DataFrame(lines).T.droplevel(1).rename_axis("who describes")


def table_texts(rows: pd.DataFrame) -> dict[str, str]:
    """Title to table, as Markdown."""
    strongest = beyond_chance(agreement(rows))
    return {
        "Gender, every metric (per cent; Ratio and CIDEr-D as they are)": markdown(table3(rows)),
        "Quality": markdown(quality(rows)),
        "Captioners unbeaten in quality and bias": markdown(front(rows)),
        "Rank agreement": markdown(matrix(rows)),
        "Pairs of metrics with p < 0.05 before correction": markdown(strongest),
        "BA→ A→T depends on how much captions mention": markdown(mentions(rows)),
    }
