"""Tables of the study's own runs, from its committed numbers."""

from __future__ import annotations

import math

import pandas as pd
from scipy import stats

from experiments.study import agreement as closeness
from experiments.study import markdown, published

HEADLINES = {"score": "LIC", "a_to_t": "DBAC A→T", "t_to_a": "DBAC T→A"}
PARTS = {
    "score": "LIC",
    "model:paired": "LIC_M",
    "human:paired": "LIC_D",
    "a_to_t": "DBAC A→T",
    "t_to_a": "DBAC T→A",
}
AGREEMENTS = {
    "conflicts": "conflicts (%)",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
}
ATTACKERS = (
    "ngram", "minilm", "minilm mlp3", "mpnet mlp3", "lstm mlp3", "rnn mlp3", "transformer1 mlp3",
    "bilstm mlp3", "birnn mlp3", "transformer5 mlp3",
)  # fmt: skip
RELIC = {"gender": "1", "race": "2"}  # its tables
IN_RELIC = {"model:paired": "lic_m", "human:paired": "lic_d", "score": "lic"}
# Pairs of attackers of a family, above which their agreement is summed up.
MOST = 3
# DBAC's own means, Tables 5 and 6: from scratch, pre-trained.
PRINTED = {"gender": "84.5 from scratch, 69.9 pre-trained", "race": "59.5 and 83.6"}


def tables(rows: pd.DataFrame) -> dict[str, str]:
    """Title to table."""
    found = {}
    for attribute in rows["attribute"].unique():
        own = rows[rows["attribute"] == attribute]
        for part, name in PARTS.items():
            if (own["part"] == part).any():
                found[f"{name}, {attribute} (per cent)"] = scores(own[own["part"] == part])
        found[f"Beside RELIC's frozen BERT, {attribute}"] = beside_frozen_bert(own, str(attribute))
    lines = rows[~rows["part"].isin(PARTS)].copy()
    lines[["headline", "part"]] = lines["part"].str.split(":", expand=True)
    for (family, attribute), own in lines.groupby(["attackers", "attribute"], sort=False):
        told = f"{family}, {attribute}"
        found[f"Coefficients of variation: {told}"] = by_headline(own, "coefficient", 1)
        if (own["part"] == "reduction").any():
            title = f"How far DBAC's coefficients lie below LIC's, per cent: {told}"
            printed = f"Of the mean coefficients: {of_means(own)}. Printed means of rows: "
            printed += f"{PRINTED[str(attribute)]}.\n"
            found[title] = f"{by_headline(own, 'reduction', 100)}\n{printed}"
        found[f"Agreement of two attackers: {told}"] = agreement(own)
    return found


def scores(own: pd.DataFrame) -> str:
    """Captioners by attackers; the last column and line say how far apart either lie."""
    table = 100 * own.pivot_table(
        index="captioner", columns="attackers", values="value", sort=False
    )
    table = table[[name for name in ATTACKERS if name in table]]
    over_captioners = table.std()
    table["spread over attackers"] = table.std(axis=1)
    table.loc["spread over captioners"] = over_captioners
    return markdown(table.rename_axis("captioner"))


def beside_frozen_bert(own: pd.DataFrame, attribute: str) -> str:
    """Attackers here against RELIC's column of a frozen BERT, over the captioners of both."""
    printed = published("relic", RELIC[attribute], "LIC_BERT_PRE")
    lines = []
    for part, column in IN_RELIC.items():
        for attackers in ATTACKERS:
            scored = own[(own["part"] == part) & (own["attackers"] == attackers)]
            values = 100 * scored.set_index("captioner")["value"]
            names = [name for name in printed.index if name in values.index]
            if not names:
                continue
            pair = values[names], printed.loc[names, column]
            found = closeness(*pair)
            found["spearman"] = float(stats.spearmanr(*pair).statistic)
            lines.append({"score": PARTS[part], "attackers": attackers, "captioners": len(names)})
            lines[-1] |= {name: f"{found[name]:.2f}" for name in ("pearson", "spearman")}
            shift = float((pair[0] - pair[1]).mean())
            lines[-1] |= {"mean difference": f"{shift:+.1f}", "centred": f"{found['centred']:.1f}"}
    return markdown(pd.DataFrame(lines).set_index("score"))


def by_headline(own: pd.DataFrame, part: str, factor: float) -> str:
    """Captioners by headlines, the mean last."""
    own = own[own["part"] == part]
    table = own.assign(told=_told(own, factor)).pivot_table(
        index="captioner", columns="headline", values="told", aggfunc="first", sort=False
    )
    table = table.reindex(
        index=[*(name for name in table.index if name != "mean"), "mean"],
        columns=[name for name in HEADLINES if name in table],
    )
    return markdown(table.rename(columns=HEADLINES).rename_axis("captioner").fillna("–"))


def of_means(own: pd.DataFrame) -> str:
    """How far the mean coefficient lies below LIC's, which no single captioner decides."""
    single = own[(own["part"] == "coefficient") & (own["captioner"] != "mean")]
    table = single.pivot_table(index="captioner", columns="headline", values="value").dropna()
    means = table.mean()  # of the captioners that each metric has
    gains = {name: 100 * (1 - means[name] / means["score"]) for name in HEADLINES if name in means}
    return ", ".join(f"{HEADLINES[n]} {gain:.0f}" for n, gain in gains.items() if n != "score")


def agreement(own: pd.DataFrame) -> str:
    """Pairs of attackers by headline: conflicts in per cent, correlations."""
    parts = own[own["part"].isin(AGREEMENTS)]
    if parts["captioner"].nunique() > MOST:
        return summed_up(own)
    factors = {name: 100 if name == "conflicts" else 1 for name in AGREEMENTS}
    told = [
        part.assign(told=_told(part, factors[str(name)])) for name, part in parts.groupby("part")
    ]
    table = pd.concat(told).pivot_table(
        index=["headline", "captioner"], columns="part", values="told", aggfunc="first", sort=False
    )
    table = table[[name for name in AGREEMENTS if name in table]].reset_index()
    table["headline"] = table["headline"].map(HEADLINES)
    names = {"headline": "score", "captioner": "attackers", **AGREEMENTS}
    return markdown(table.rename(columns=names).set_index("score").fillna("–"))


def summed_up(own: pd.DataFrame) -> str:
    """A line a headline: the mean over pairs of attackers and, behind it, the worst pair."""
    lines = []
    for headline, name in HEADLINES.items():
        parts = own[own["headline"] == headline]
        pairs = parts[parts["part"].isin(AGREEMENTS)].pivot_table(
            index="captioner", columns="part", values="value"
        )
        if pairs.empty:
            continue
        scored = parts[(parts["part"] == "coefficient") & (parts["captioner"] != "mean")]
        line = {"score": name, "captioners": len(scored), "pairs": len(pairs)}
        line["conflicts (%)"] = (
            f"{100 * pairs['conflicts'].mean():.0f} ({100 * pairs['conflicts'].max():.0f})"
        )
        for part in ("pearson", "spearman"):
            line[AGREEMENTS[part]] = f"{pairs[part].mean():.2f} ({pairs[part].min():.2f})"
        lines.append(line)
    return markdown(pd.DataFrame(lines).set_index("score")) + "\nBehind the mean, the worst pair.\n"


def _told(own: pd.DataFrame, factor: float) -> list[str]:
    """Numbers with their intervals."""
    numbers = own[["value", "ci_low", "ci_high"]].itertuples(index=False, name=None)
    return [_interval(*(factor * number for number in line), factor == 1) for line in numbers]


def _interval(value: float, low: float, high: float, fine: bool) -> str:
    written = [f"{number:.{2 if fine else 0}f}" for number in (value, low, high)]
    return written[0] if math.isnan(low) else f"{written[0]} [{written[1]}, {written[2]}]"
