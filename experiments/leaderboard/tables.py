"""The tables of the study, from its rows."""

from __future__ import annotations

import math
from itertools import combinations

import pandas as pd
from scipy import stats

from bias_pipeline.report.table import p_cell, percent
from experiments.study import beyond_chance, cell, markdown, rank_agreement

# Name of each headline in the tables, to (metric, part).
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
    "Assumed group": ("assumed_group", "score"),
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
# Without an order: the metrics answer for each captioner by parts of their own.
UNRANKED = {"Descriptions": ("descriptions", "score"), "Invented objects": ("objects", "score")}
ATTRIBUTES = ("gender", "race")
REFUSED = "not applicable"
PRIORS = ("counts", "shared", "none")


def standing(rows: pd.DataFrame, attribute: str, headline: str) -> pd.DataFrame:
    """The captioners that have a headline, the fairest (of Quality the best) first."""
    metric, part = (HEADLINES | UNRANKED)[headline]
    selected = rows[(rows["attribute"] == attribute) & (rows["metric"] == metric)]
    selected = selected[(selected["part"] == part) & selected["value"].notna()].fillna(
        {"sign": "", "letters": ""}
    )
    return selected.set_index("captioner").sort_values("unfairness", kind="stable")


def board(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Every headline of every captioner: value, interval, direction, and group."""
    lines = {}
    for headline in HEADLINES | UNRANKED:
        ranking = standing(rows, attribute, headline)
        cells = {
            name: " ".join(filter(None, (cell(line), line["sign"], line["letters"])))
            for name, line in ranking.iterrows()
        }
        lines[headline] = {name: cells.get(name, REFUSED) for name in rows["captioner"].unique()}
    return pd.DataFrame(lines).T.rename_axis(attribute)


def order(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Every headline's captioners in order, and how many pairs differ significantly."""
    lines = {}
    for headline in HEADLINES:
        ranking = standing(rows, attribute, headline)
        pairs = [not set(a) & set(b) for a, b in combinations(ranking["letters"], 2)]
        ranked = ", ".join(f"{name} ({line['letters']})" for name, line in ranking.iterrows())
        lines[headline] = {
            "fairest first": ranked or REFUSED,
            "pairs told apart": f"{sum(pairs)} of {len(pairs)}" if pairs else "–",
        }
    return pd.DataFrame(lines).T.rename_axis(attribute)


def signs(rows: pd.DataFrame) -> pd.DataFrame:
    """How many captioners are above, at and below the no-bias value; do attributes agree?"""
    lines = {}
    for headline in HEADLINES:
        both = [standing(rows, attribute, headline) for attribute in ATTRIBUTES]
        line = {
            f"{attribute} ↑ / ≈ / ↓": _count_pairs(ranking)
            for attribute, ranking in zip(ATTRIBUTES, both, strict=True)
        }
        lines[headline] = {**line, **_order_agreement(*both)}
    return pd.DataFrame(lines).T.rename_axis("captioners")


def _count_pairs(ranking: pd.DataFrame) -> str:
    if not len(ranking):
        return REFUSED
    if not ranking["sign"].any():
        return "not 0 for people either"
    return " / ".join(str(sum(ranking["sign"] == s)) for s in "↑≈↓")


def _all_equal(values: pd.Series) -> bool:
    """Whether there is no order."""
    return bool((values == values.iloc[:1].squeeze()).all()) if len(values) else True


def _order_agreement(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, str]:
    """Kendall's tau-b of the orders under the two attributes, if both exist."""
    if set(one.index) != set(other.index) or _all_equal(other["unfairness"]):
        return {"tau-b of the orders": "–", "p": "–"}
    tau, p = stats.kendalltau(one["unfairness"], other.loc[one.index, "unfairness"])
    return {"tau-b of the orders": f"{tau:.2f}", "p": f"{p:.4f}"}


def follows(rows: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau-b of each order with how many objects and groups captions name."""
    lines: dict[str, dict[str, str]] = {headline: {} for headline in HEADLINES}
    for attribute in ATTRIBUTES:
        selected = rows[rows["attribute"] == attribute].set_index("captioner")
        named = selected[
            (selected["metric"] == "ba_directional") & (selected["part"] == "mentions:model")
        ]["value"]
        groups = (
            1
            - selected[(selected["metric"] == "lic") & (selected["part"] == "score")][
                "neutral_rate"
            ]
        )
        for headline, line in lines.items():
            place = standing(rows, attribute, headline)["unfairness"]
            for what, values in (("objects", named), ("groups", groups)):
                line[f"{attribute}: {what} named"] = _tau(place, values)
    return pd.DataFrame(lines).T.rename_axis("tau-b of the order with")


def _tau(order: pd.Series, values: pd.Series) -> str:
    """Kendall's tau-b, a dash where a captioner has no place in the order."""
    if len(order) < len(values):
        return "–"
    tau = stats.kendalltau(order, values[order.index]).statistic
    return "–" if math.isnan(tau) else f"{tau:.2f}"  # nobody names a group: there is no order


def readings(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """DBAC under its three priors, published one first, in the directions that can be scored."""
    selected = rows[(rows["attribute"] == attribute) & (rows["metric"] == "dbac")]
    columns = {}
    for part, arrow in (("a_to_t", "A→T"), ("t_to_a", "T→A")):
        for prior in PRIORS:
            lines = selected[selected["part"] == f"{part}:{prior}"].set_index("captioner")
            if len(lines):
                columns[f"{arrow} {prior}"] = lines.apply(cell, axis=1)
    return pd.DataFrame(columns).rename_axis(attribute)


def basis(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """The data behind the numbers: images, coverage, named groups, both sides of LIC."""
    selected = rows[rows["attribute"] == attribute]
    wide = {
        (metric, part): lines.set_index("captioner")
        for (metric, part), lines in selected.groupby(["metric", "part"])
    }
    lic, directional = wide["lic", "score"], "ba_directional"
    columns = {
        "images tested": lic["n_images"].map(str),
        "coverage": lic["coverage"].map(lambda v: percent(v, 0)),
        "name a group, %": (1 - lic["neutral_rate"]).map(percent),
        "objects named": wide[directional, "mentions:model"]["value"],
        "objects in labels": wide[directional, "mentions:human"]["value"],
        "captions behind DPA T→A": wide["dpa", "t_to_a"]["n_images"].map(str),
        "LIC_M": wide["lic", "model"].apply(cell, axis=1),
        "LIC_D": wide["lic", "human"].apply(cell, axis=1),
        "LIC p": lic["p_value"].map(p_cell),
        "Leakage p": wide["leakage", "score"]["p_value"].map(p_cell),
    }
    return pd.DataFrame(columns).rename_axis(attribute)


def agreement(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Which headlines rank captioners alike, or the other way round."""
    table = {name: standing(rows, attribute, name)["unfairness"] for name in HEADLINES}
    known = pd.DataFrame(table).dropna(axis=1)
    return rank_agreement(known.loc[:, ~known.apply(_all_equal)])


def reasons(refused: pd.DataFrame) -> pd.DataFrame:
    """Scores that the data do not allow, and why."""
    groups = refused.groupby(["attribute", "metric", "reason"], sort=False)["captioner"]
    table = groups.agg(", ".join).reset_index().set_index("attribute")
    return table[["metric", "captioner", "reason"]].rename(columns={"captioner": "captioners"})


def table_texts(rows: pd.DataFrame, refused: pd.DataFrame) -> dict[str, str]:
    """Title to table, as Markdown."""
    tables = {
        "Both attributes: where captioners are, and whether their orders agree": signs(rows),
        "Both attributes: whether the order depends on how much captions mention": follows(rows),
    }
    for name in ATTRIBUTES:
        tables[f"{name}: every metric"] = board(rows, name)
        tables[f"{name}: in order"] = order(rows, name)
        tables[f"{name}: the data behind it"] = basis(rows, name)
        tables[f"{name}: DBAC under its priors (per cent)"] = readings(rows, name)
    texts = {title: markdown(table) for title, table in tables.items()}
    for name in ATTRIBUTES:
        pairs = agreement(rows, name)
        title = f"{name}: pairs of metrics with p < 0.05 before correction, of {len(pairs)}"
        texts[title] = markdown(beyond_chance(pairs))
    if len(refused):
        texts["Not applicable"] = markdown(reasons(refused))
    return texts
