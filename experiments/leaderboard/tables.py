"""The tables of the study, from its rows."""

from __future__ import annotations

import math
from itertools import combinations

import pandas as pd
from scipy import stats

from bias_pipeline.report.tables import p_cell, percent
from experiments.study import beyond_chance, cell, markdown, rank_agreement

# What each headline is called here, to (metric, part).
ATTACKED = {
    "LIC": ("lic", "score"),
    "Leakage": ("leakage", "score"),
    "DBAC A→T": ("dbac", "a_to_t"),
    "DBAC T→A": ("dbac", "t_to_a"),
    "DPA A→T": ("dpa", "a_to_t"),
    "DPA T→A": ("dpa", "t_to_a"),
}
COUNTED = {
    "Error": ("gender_error", "score"),
    "Ratio": ("gender_ratio", "score"),
    "Group accuracy": ("group_accuracy", "score"),
    "BA_MALS": ("ba_mals", "score"),
    "BA→ A→T": ("ba_directional", "a_to_t"),
    "BA→ T→A": ("ba_directional", "t_to_a"),
    "Multi→ A→T": ("multi_directional", "a_to_t"),
    "Multi→ T→A": ("multi_directional", "t_to_a"),
    "Differential fairness": ("differential_fairness", "score"),
    "Co-occurrence": ("cooccurrence", "score"),
    "Quality": ("quality", "score"),
}
HEADLINES = ATTACKED | COUNTED
ATTRIBUTES = ("gender", "race")
REFUSED = "not applicable"
PRIORS = ("counts", "shared", "none")


def standing(rows: pd.DataFrame, attribute: str, headline: str) -> pd.DataFrame:
    """The captioners that have a headline, the fairest (of Quality the best) first."""
    metric, part = HEADLINES[headline]
    own = rows[(rows["attribute"] == attribute) & (rows["metric"] == metric)]
    own = own[(own["part"] == part) & own["value"].notna()].fillna({"sign": "", "letters": ""})
    return own.set_index("captioner").sort_values("unfairness", kind="stable")


def board(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Every headline of every captioner: value, interval, where it points, and its group."""
    lines = {}
    for headline in HEADLINES:
        own = standing(rows, attribute, headline)
        cells = {
            name: " ".join(filter(None, (cell(line), line["sign"], line["letters"])))
            for name, line in own.iterrows()
        }
        lines[headline] = {name: cells.get(name, REFUSED) for name in rows["captioner"].unique()}
    return pd.DataFrame(lines).T.rename_axis(attribute)


def order(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Every headline's captioners in order, and how many pairs are told apart."""
    lines = {}
    for headline in HEADLINES:
        own = standing(rows, attribute, headline)
        pairs = [not set(a) & set(b) for a, b in combinations(own["letters"], 2)]
        ranked = ", ".join(f"{name} ({line['letters']})" for name, line in own.iterrows())
        lines[headline] = {
            "fairest first": ranked or REFUSED,
            "pairs told apart": f"{sum(pairs)} of {len(pairs)}" if pairs else "–",
        }
    return pd.DataFrame(lines).T.rename_axis(attribute)


def signs(rows: pd.DataFrame) -> pd.DataFrame:
    """How many captioners lie above neutral, at it and below it, and whether attributes agree."""
    lines = {}
    for headline in HEADLINES:
        both = [standing(rows, attribute, headline) for attribute in ATTRIBUTES]
        line = {
            f"{attribute} ↑ / ≈ / ↓": _counted(own)
            for attribute, own in zip(ATTRIBUTES, both, strict=True)
        }
        lines[headline] = {**line, **_alike(*both)}
    return pd.DataFrame(lines).T.rename_axis("captioners")


def _counted(own: pd.DataFrame) -> str:
    if not len(own):
        return REFUSED
    if not own["sign"].any():
        return "people move it too"
    return " / ".join(str(sum(own["sign"] == s)) for s in "↑≈↓")


def _alike(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, str]:
    """Kendall's tau-b of the orders under the two attributes, where both are there."""
    if set(one.index) != set(other.index):
        return {"tau-b of the orders": "–", "p": "–"}
    tau, p = stats.kendalltau(one["unfairness"], other.loc[one.index, "unfairness"])
    return {"tau-b of the orders": f"{tau:.2f}", "p": f"{p:.4f}"}


def follows(rows: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau-b of each order with how much captioners say: objects, and groups."""
    lines: dict[str, dict[str, str]] = {headline: {} for headline in HEADLINES}
    for attribute in ATTRIBUTES:
        own = rows[rows["attribute"] == attribute].set_index("captioner")
        named = own[(own["metric"] == "ba_directional") & (own["part"] == "mentions:model")][
            "value"
        ]
        groups = 1 - own[(own["metric"] == "lic") & (own["part"] == "score")]["neutral_rate"]
        for headline, line in lines.items():
            place = standing(rows, attribute, headline)["unfairness"]
            for said, values in (("objects", named), ("groups", groups)):
                line[f"{attribute}: {said} named"] = _tau(place, values)
    return pd.DataFrame(lines).T.rename_axis("tau-b of the order with")


def _tau(order: pd.Series, values: pd.Series) -> str:
    """Kendall's tau-b, a dash where a captioner has no place in the order."""
    if len(order) < len(values):
        return "–"
    tau = stats.kendalltau(order, values[order.index]).statistic
    return "–" if math.isnan(tau) else f"{tau:.2f}"  # nobody names a group: there is no order


def readings(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """DBAC under its three priors, published one first, in the directions that can be scored."""
    own = rows[(rows["attribute"] == attribute) & (rows["metric"] == "dbac")]
    found = {}
    for part, arrow in (("a_to_t", "A→T"), ("t_to_a", "T→A")):
        for prior in PRIORS:
            lines = own[own["part"] == f"{part}:{prior}"].set_index("captioner")
            if len(lines):
                found[f"{arrow} {prior}"] = lines.apply(cell, axis=1)
    return pd.DataFrame(found).rename_axis(attribute)


def basis(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """What the numbers rest on: images, coverage, what captions name, both sides of LIC."""
    own = rows[rows["attribute"] == attribute]
    wide = {
        (metric, part): lines.set_index("captioner")
        for (metric, part), lines in own.groupby(["metric", "part"])
    }
    lic, said = wide["lic", "score"], "ba_directional"
    found = {
        "images": lic["n_images"].map(str),
        "coverage": lic["coverage"].map(lambda v: percent(v, 0)),
        "name a group, %": (1 - lic["neutral_rate"]).map(percent),
        "objects named": wide[said, "mentions:model"]["value"],
        "objects in labels": wide[said, "mentions:human"]["value"],
        "captions behind DPA T→A": wide["dpa", "t_to_a"]["n_images"].map(str),
        "LIC_M": wide["lic", "model"].apply(cell, axis=1),
        "LIC_D": wide["lic", "human"].apply(cell, axis=1),
        "LIC p": lic["p_value"].map(p_cell),
        "Leakage p": wide["leakage", "score"]["p_value"].map(p_cell),
    }
    return pd.DataFrame(found).rename_axis(attribute)


def agreement(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Which headlines rank captioners alike, or the other way round."""
    table = {name: standing(rows, attribute, name)["unfairness"] for name in HEADLINES}
    return rank_agreement(pd.DataFrame(table).dropna(axis=1))


def reasons(refused: pd.DataFrame) -> pd.DataFrame:
    """What the data do not permit, and why."""
    groups = refused.groupby(["attribute", "metric", "reason"], sort=False)["captioner"]
    found = groups.agg(", ".join).reset_index().set_index("attribute")
    return found[["metric", "captioner", "reason"]].rename(columns={"captioner": "captioners"})


def table_texts(rows: pd.DataFrame, refused: pd.DataFrame) -> dict[str, str]:
    """Title to table, as Markdown."""
    found = {
        "Both attributes: where captioners lie, and whether their orders agree": signs(rows),
        "Both attributes: whether the order follows how much is said": follows(rows),
    }
    for name in ATTRIBUTES:
        found[f"{name}: every metric"] = board(rows, name)
        found[f"{name}: in order"] = order(rows, name)
        found[f"{name}: what it rests on"] = basis(rows, name)
        found[f"{name}: DBAC under its priors (per cent)"] = readings(rows, name)
    texts = {title: markdown(table) for title, table in found.items()}
    for name in ATTRIBUTES:
        pairs = agreement(rows, name)
        title = f"{name}: pairs of metrics with p < 0.05 before correction, of {len(pairs)}"
        texts[title] = markdown(beyond_chance(pairs))
    if len(refused):
        texts["Not applicable"] = markdown(reasons(refused))
    return texts
