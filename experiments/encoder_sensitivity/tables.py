"""Tables of the study's own runs, from its committed numbers."""

from __future__ import annotations

import math

import pandas as pd
from scipy import stats

from experiments.study import agreement as closeness
from experiments.study import markdown, printed_table

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
# Families with more pairs of attackers than this get a summary of agreement.
MOST = 3
# DBAC's own means, Tables 5 and 6: from scratch, pre-trained.
PRINTED = {"gender": "84.5 from scratch, 69.9 pre-trained", "race": "59.5 and 83.6"}


def tables(rows: pd.DataFrame) -> dict[str, str]:
    """Title to table."""
    texts = {}
    for attribute in rows["attribute"].unique():
        selected = rows[rows["attribute"] == attribute]
        for part, name in PARTS.items():
            if (selected["part"] == part).any():
                texts[f"{name}, {attribute} (per cent)"] = scores(
                    selected[selected["part"] == part]
                )
        texts[f"Compared with RELIC's frozen BERT, {attribute}"] = beside_frozen_bert(
            selected, str(attribute)
        )
    lines = rows[~rows["part"].isin(PARTS)].copy()
    lines[["headline", "part"]] = lines["part"].str.split(":", expand=True)
    for (family, attribute), selected in lines.groupby(["attackers", "attribute"], sort=False):
        subject = f"{family}, {attribute}"
        texts[f"Coefficients of variation: {subject}"] = by_headline(selected, "coefficient", 1)
        if (selected["part"] == "reduction").any():
            title = f"By how much DBAC's coefficients are below LIC's, per cent: {subject}"
            printed = f"Of the mean coefficients: {of_means(selected)}. Printed means of rows: "
            printed += f"{PRINTED[str(attribute)]}.\n"
            texts[title] = f"{by_headline(selected, 'reduction', 100)}\n{printed}"
        texts[f"Agreement between two attackers: {subject}"] = agreement(selected)
    return texts


def scores(rows: pd.DataFrame) -> str:
    """Captioners by attackers; the last column and line give the spread over either."""
    table = 100 * rows.pivot_table(
        index="captioner", columns="attackers", values="value", sort=False
    )
    table = table[[name for name in ATTACKERS if name in table]]
    over_captioners = table.std()
    table["spread over attackers"] = table.std(axis=1)
    table.loc["spread over captioners"] = over_captioners
    return markdown(table.rename_axis("captioner"))


def beside_frozen_bert(rows: pd.DataFrame, attribute: str) -> str:
    """Our attackers compared with RELIC's column of a frozen BERT, over the captioners of both."""
    printed = printed_table("relic", RELIC[attribute], "LIC_BERT_PRE")
    lines = []
    for part, column in IN_RELIC.items():
        for attackers in ATTACKERS:
            scored = rows[(rows["part"] == part) & (rows["attackers"] == attackers)]
            values = 100 * scored.set_index("captioner")["value"]
            names = [name for name in printed.index if name in values.index]
            if not names:
                continue
            pair = values[names], printed.loc[names, column]
            statistics = closeness(*pair)
            statistics["spearman"] = float(stats.spearmanr(*pair).statistic)
            lines.append({"score": PARTS[part], "attackers": attackers, "captioners": len(names)})
            lines[-1] |= {name: f"{statistics[name]:.2f}" for name in ("pearson", "spearman")}
            shift = float((pair[0] - pair[1]).mean())
            lines[-1] |= {
                "mean difference": f"{shift:+.1f}",
                "centred": f"{statistics['centred']:.1f}",
            }
    return markdown(pd.DataFrame(lines).set_index("score"))


def by_headline(rows: pd.DataFrame, part: str, factor: float) -> str:
    """Captioners by headlines, the mean last."""
    rows = rows[rows["part"] == part]
    table = rows.assign(text=_texts(rows, factor)).pivot_table(
        index="captioner", columns="headline", values="text", aggfunc="first", sort=False
    )
    table = table.reindex(
        index=[*(name for name in table.index if name != "mean"), "mean"],
        columns=[name for name in HEADLINES if name in table],
    )
    return markdown(table.rename(columns=HEADLINES).rename_axis("captioner").fillna("–"))


def of_means(rows: pd.DataFrame) -> str:
    """How far the mean coefficient is below LIC's; no single captioner decides it."""
    single = rows[(rows["part"] == "coefficient") & (rows["captioner"] != "mean")]
    table = single.pivot_table(index="captioner", columns="headline", values="value").dropna()
    means = table.mean()  # of the captioners that each metric has
    gains = {name: 100 * (1 - means[name] / means["score"]) for name in HEADLINES if name in means}
    return ", ".join(f"{HEADLINES[n]} {gain:.0f}" for n, gain in gains.items() if n != "score")


def agreement(rows: pd.DataFrame) -> str:
    """Pairs of attackers by headline: conflicts in per cent, correlations."""
    parts = rows[rows["part"].isin(AGREEMENTS)]
    if parts["captioner"].nunique() > MOST:
        return summed_up(rows)
    factors = {name: 100 if name == "conflicts" else 1 for name in AGREEMENTS}
    frames = [
        part.assign(text=_texts(part, factors[str(name)])) for name, part in parts.groupby("part")
    ]
    table = pd.concat(frames).pivot_table(
        index=["headline", "captioner"], columns="part", values="text", aggfunc="first", sort=False
    )
    table = table[[name for name in AGREEMENTS if name in table]].reset_index()
    table["headline"] = table["headline"].map(HEADLINES)
    names = {"headline": "score", "captioner": "attackers", **AGREEMENTS}
    return markdown(table.rename(columns=names).set_index("score").fillna("–"))


def summed_up(rows: pd.DataFrame) -> str:
    """One line per headline: the mean over pairs of attackers and, in brackets, the worst pair."""
    lines = []
    for headline, name in HEADLINES.items():
        parts = rows[rows["headline"] == headline]
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
    return markdown(pd.DataFrame(lines).set_index("score")) + "\nIn brackets: the worst pair.\n"


def _texts(rows: pd.DataFrame, factor: float) -> list[str]:
    """Numbers with their intervals."""
    numbers = rows[["value", "ci_low", "ci_high"]].itertuples(index=False, name=None)
    return [_interval(*(factor * number for number in line), factor == 1) for line in numbers]


def _interval(value: float, low: float, high: float, fine: bool) -> str:
    written = [f"{number:.{2 if fine else 0}f}" for number in (value, low, high)]
    return written[0] if math.isnan(low) else f"{written[0]} [{written[1]}, {written[2]}]"
