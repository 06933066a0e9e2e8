"""LIC against RELIC's printed tables, what each repair of the protocol moves, and RELIC's claims.

Usage: python -m experiments.lic_reproduction.reproduce [DATA_ROOT [OUTPUTS]]

With DATA_ROOT all cells are run and rows.csv is written; without it, tables and figure are made
from the rows.csv that is there.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from scipy import stats

from bias_pipeline.results import ResultStore
from bias_pipeline.stats.compare import holm, paired_difference, two_sided_p
from experiments.study import agreement, markdown, part, published, sweep

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
    # No published vocabulary holds the mask; aligned away, one side alone would keep it.
    "race words masked": ["experiment=relic_race", "masking=lic", "+alignment.keep=[raceword]"],
    "repaired default": ["dataset=lic", "attribute=race"],
}
# Three convex attackers, so that a claim on robustness can be looked at.
ATTACKERS = {
    "words and pairs": [],
    "words alone": ["encoder.order=1"],
    "weaker penalty": ["probe.inverse_penalty=1"],
}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    common = [f"dataset.root={data / 'lic' / 'bias_data'}", "captioner=all", "seeds=10"]
    cells = {"gender": ["dataset=lic"], "gender leakage": ["dataset=lic", "metric=leakage"]}
    cells |= {f"repair: {name}": ["experiment=relic_gender", *o] for name, o in REPAIRS.items()}
    cells |= {f"race: {name}": o for name, o in RACE.items()}
    cells |= {f"attacker: {name}": ["dataset=lic", *o] for name, o in ATTACKERS.items()}
    # The published run shares its options with a cell of its own that has another encoder.
    rows = [
        sweep(name, outputs, *overrides, "encoder=ngram", *common)
        for name, overrides in cells.items()
    ]
    return pd.concat(rows, ignore_index=True)


def gender_table(rows: pd.DataFrame) -> pd.DataFrame:
    printed = published("relic", "1", "LIC_LSTM")
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
    found = {}
    for attribute, study, table in (("gender", "gender", "1"), ("race", "race: as published", "2")):
        printed = published("relic", table, "LIC_LSTM")
        for name, column in (("model", "lic_m"), ("human", "lic_d"), ("score", "lic")):
            own = part(rows, study, name)
            found[f"{attribute} {column}"] = agreement(own, printed.loc[own.index, column])
    return pd.DataFrame(found).T.rename_axis("against RELIC's LSTM")


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


def printed_difference(table: pd.DataFrame, a: str, b: pd.Series) -> tuple[float, float]:
    """Printed LIC of one row minus that of another, and p from the deviations of ten seeds.

    Deviations stand for independent means; the paper prints none for LIC itself.
    """
    gap = table.loc[a, "lic"] - b["lic"]
    spread = sum(x[f"{c}_std"] ** 2 / 10 for x in (table.loc[a], b) for c in ("lic_m", "lic_d"))
    return float(gap), two_sided_p(float(gap), 1.959964 * spread**0.5)


def claims(rows: pd.DataFrame, outputs: Path) -> pd.DataFrame:
    lines = [*_claim_1(rows), *_claim_2(rows), *_claim_3(rows), *_claim_4(rows, outputs)]
    return pd.DataFrame(
        lines, columns=["claim", "where", "what was compared", "finding", "follows"]
    )


def _claim_1(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """LIC is robust against encoders: the order of captioners is kept."""
    lines = []
    for attribute, table in (("gender", "1"), ("race", "2")):
        columns = {
            e: published("relic", table, f"LIC_{e}")["lic"] for e in ("LSTM", "BERT_FT", "BERT_PRE")
        }
        for a, b in combinations(columns, 2):
            lines.append(_ranks("RELIC " + attribute, f"{a} and {b}", columns[a], columns[b]))
    own = {name: part(rows, f"attacker: {name}", "score") for name in ATTACKERS}
    lines += [
        _ranks("ours gender", f"{a} and {b}", own[a], own[b]) for a, b in combinations(own, 2)
    ]
    return lines


def _ranks(where: str, pair: str, a: pd.Series, b: pd.Series) -> tuple[str, ...]:
    rho, p = stats.spearmanr(a, b.loc[a.index])
    follows = "yes" if p < 0.05 else "not shown"
    return ("1 robust against encoders", where, pair, f"Spearman {rho:.2f}, p {p:.3f}", follows)


def _claim_2(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """All models amplify gender and race bias."""
    lines = []
    for attribute, table in (("gender", "1"), ("race", "2")):
        for encoder in ("LSTM", "BERT_FT", "BERT_PRE"):
            lic = published("relic", table, f"LIC_{encoder}")["lic"]
            below = [f"{name} {value:+.1f}" for name, value in lic[lic <= 0].items()]
            lines.append(_all_above(f"RELIC {attribute}", encoder, len(lic), below))
    for attribute, study in (("gender", "gender"), ("race", "race: repaired default")):
        own = rows[(rows["study"] == study) & (rows["part"] == "score")]
        level = own[own["ci_low"] <= 0]
        below = [
            f"{c} {100 * v:+.1f}" for c, v in zip(level["captioner"], level["value"], strict=True)
        ]
        lines.append(_all_above(f"ours {attribute}", "n-gram, interval above 0", len(own), below))
    return lines


def _all_above(where: str, how: str, n: int, below: list[str]) -> tuple[str, ...]:
    finding = f"{n - len(below)} of {n} above 0" + (f", not: {', '.join(below)}" if below else "")
    return ("2 all models amplify", where, how, finding, "no" if below else "yes")


def _claim_3(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """Racial bias is less apparent than gender bias: LIC of race below LIC of gender."""
    lines = []
    for encoder in ("LSTM", "BERT_FT", "BERT_PRE"):
        gender, race = (published("relic", t, f"LIC_{encoder}") for t in ("1", "2"))
        tests = {name: printed_difference(race, name, gender.loc[name]) for name in race.index}
        lines.append(_lower(f"RELIC {encoder}", tests))
    tests = {}
    for name in part(rows, "gender", "score").index:
        one, two = (_score_row(rows, study, name) for study in ("race: repaired default", "gender"))
        half = ((one.ci_high - one.ci_low) ** 2 + (two.ci_high - two.ci_low) ** 2) ** 0.5 / 2
        gap = one.value - two.value
        tests[name] = (100 * gap, two_sided_p(gap, half))
    return [*lines, _lower("ours, n-gram", tests)]


def _score_row(rows: pd.DataFrame, study: str, captioner: str):  # type: ignore[no-untyped-def]
    own = rows[(rows["study"] == study) & (rows["part"] == "score")]
    return next(own[own["captioner"] == captioner].itertuples())


def _lower(where: str, tests: dict[str, tuple[float, float]]) -> tuple[str, ...]:
    adjusted = dict(zip(tests, holm([p for _, p in tests.values()]), strict=True))
    lower = [name for name, (gap, _) in tests.items() if gap < 0]
    sure = [name for name in lower if adjusted[name] < 0.05]
    others = [f"{name} {gap:+.1f}" for name, (gap, _) in tests.items() if gap >= 0]
    finding = f"{len(lower)} of {len(tests)} lower, {len(sure)} significantly (Holm)"
    finding += f"; not lower: {', '.join(others)}" if others else ""
    what = "race minus gender, each captioner"
    return ("3 race less apparent than gender", where, what, finding, "no" if others else "yes")


def _claim_4(rows: pd.DataFrame, outputs: Path) -> list[tuple[str, ...]]:
    """The Equalizer raises gender bias over NIC+, and not racial bias."""
    lines = []
    for attribute, table in (("gender", "1"), ("race", "2")):
        for encoder in ("LSTM", "BERT_FT", "BERT_PRE"):
            printed = published("relic", table, f"LIC_{encoder}")
            gap, p = printed_difference(printed, "nic_equalizer", printed.loc["nic_plus"])
            lines.append(_raised(f"RELIC {attribute}", encoder, attribute, gap, p))
        study = "gender" if attribute == "gender" else "race: repaired default"
        lines.append(_own_equalizer(rows, study, attribute, outputs))
    return lines


def _raised(where: str, how: str, attribute: str, gap: float, p: float) -> tuple[str, ...]:
    raised = gap > 0 and p < 0.05
    follows = "yes" if raised == (attribute == "gender") else "no"
    what = f"nic_equalizer minus nic_plus, {how}"
    return ("4 Equalizer: gender up, race not", where, what, f"{gap:+.1f}, p {p:.3f}", follows)


def _own_equalizer(
    rows: pd.DataFrame, study: str, attribute: str, outputs: Path
) -> tuple[str, ...]:
    own = rows[(rows["study"] == study) & (rows["part"] == "score")].set_index("captioner")
    if "nic_equalizer" not in own.index:
        what = "nic_equalizer minus nic_plus, n-gram"
        finding = "skipped: its captions are not among the files here"
        return (
            "4 Equalizer: gender up, race not",
            f"ours {attribute}",
            what,
            finding,
            "not tested",
        )
    store = ResultStore(outputs)
    draws = [store.draws(own.loc[name, "run_id"]) for name in ("nic_equalizer", "nic_plus")]
    found = paired_difference(*(each["score"] for each in draws))
    return _raised(
        f"ours {attribute}", "n-gram, paired", attribute, 100 * found.value, found.p_value
    )


def figure(rows: pd.DataFrame, path: Path) -> None:
    """Ours with intervals beside RELIC's printed values, one line a captioner."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "lic_reproduction"  # the same figure from the same rows
    import matplotlib.pyplot as plt

    own = rows[(rows["study"] == "gender") & (rows["part"] == "score")]
    order = own.sort_values("value")["captioner"].tolist()
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    _panel(axes[0], rows, order, "model", "lic_m", "LIC_M: all labelled images")
    _panel(axes[1], rows, order, "score", "lic", "LIC = LIC_M − LIC_D: images with human captions")
    axes[1].axvline(0, color="0.5", linewidth=1)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    fig.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    plt.close(fig)


def _panel(
    ax: Axes, rows: pd.DataFrame, order: list[str], name: str, column: str, title: str
) -> None:
    own = rows[(rows["study"] == "gender") & (rows["part"] == name)].set_index("captioner")
    value, low, high = (100 * own.loc[order, c] for c in ("value", "ci_low", "ci_high"))
    printed = published("relic", "1", "LIC_LSTM").loc[order, column]
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


def publish(rows: pd.DataFrame, outputs: Path) -> None:
    """Write tables and figure."""
    tables = {
        "Gender, ten seeds, n-gram attacker (per cent)": gender_table(rows),
        "Agreement with RELIC's LSTM columns": agreement_table(rows),
        "Gender: what each repair of the published protocol moves (per cent)": repair_table(
            rows, "repair: "
        ),
        "Race: what masking and alignment change (per cent)": repair_table(rows, "race: "),
        "RELIC's claims": claims(rows, outputs).set_index("claim"),
    }
    text = "".join(f"## {title}\n\n{markdown(table)}\n" for title, table in tables.items())
    (HERE / "RESULTS.md").write_text(f"# Results\n\nMade by `reproduce.py`; do not edit.\n\n{text}")
    figure(rows, HERE / "gender.svg")


def main(data: str | None = None, outputs: str = "outputs/lic_reproduction") -> None:
    if data is not None:
        run(Path(data), Path(outputs)).to_csv(HERE / "rows.csv", index=False, float_format="%.6g")
    rows = pd.read_csv(HERE / "rows.csv", keep_default_na=False, na_values=[""])
    publish(rows, Path(outputs))


if __name__ == "__main__":
    main(*sys.argv[1:])
