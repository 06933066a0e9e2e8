"""ImageCaptioner2 on planted captioners: does it follow the dial, whoever judges, and use pictures?

Usage: python -m experiments.imagecaptioner2.reproduce [OUTPUTS]

With OUTPUTS everything is computed and rows.csv and agreements.csv are written; without it, the
tables are made from those that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from scipy import stats

from bias_pipeline.analysis.consistency import agreements
from bias_pipeline.analysis.variants import OVER, variants
from bias_pipeline.report.content import finished_runs
from experiments.study import markdown, part, sweep, write_results

HERE = Path(__file__).resolve().parent
# Amplification from attribute to task, planted; other dials neutral.
A_TO_T = {
    "dampener": -0.6,
    "a_minus_3": -0.3,
    "faithful": 0.0,
    "a_plus_3": 0.3,
    "amplifier": 0.5,
    "a_plus_9": 0.9,
}
FURTHER = {name: dial for name, dial in A_TO_T.items() if name.startswith("a_")}
# Without bias in that direction: from task to attribute, and few words.
OTHERS = ("stereotyper", "terse")
MASKINGS = ("none", "person_segment", "person_box")
COMMON = ("seeds=3", "stats.resamples=1000", "logger=csv")
ONE = "metric.positions=1"  # human caption an image, as ImageCaptioner2 has here
STUDIES = ("imagecaptioner2 sat", "imagecaptioner2 grit", "lic ngram", "lic lstm", "lic minilm")
AGREEMENTS = ("conflicts", "pearson", "spearman", "kendall")
LEAKS = ("leak:masked", "leak:others", "leak:silhouette", "leak:blank")
ALL_LEAKS = "metric.leaks=[masked,others,silhouette,blank]"


def run(outputs: Path) -> pd.DataFrame:
    """Rows of all sweeps."""
    dials = [f"+dataset.captioners.{name}.a_to_t={dial}" for name, dial in FURTHER.items()]
    captioners = f"captioner={','.join([*A_TO_T, *OTHERS])}"
    named = (captioners, *dials, *COMMON)
    found = [
        sweep("lic ngram", outputs, "metric=lic", *named, ONE),
        *(
            sweep(f"lic {encoder}", outputs, "metric=lic", f"encoder={encoder}", *named, ONE)
            for encoder in ("lstm", "minilm")
        ),
        *(
            sweep(
                f"imagecaptioner2 {judge}",
                outputs,
                "metric=imagecaptioner2",
                f"encoder={judge}",
                *named,
            )
            for judge in ("sat", "grit")
        ),
    ]
    for masking in MASKINGS:
        shown = (f"image_masking={masking}", ALL_LEAKS)
        words = (*shown, "captioner=faithful", "metric.sides=[model]", *COMMON)
        own = sweep(masking, outputs, "metric=imagecaptioner2", "encoder=sat", *words)
        found.append(own.assign(study="masking", image_masking=masking))
    return pd.concat(found, ignore_index=True)


def agreed(rows: pd.DataFrame, outputs: Path) -> pd.DataFrame:
    """How far every two attackers of one metric agree, with intervals from the runs' draws."""
    results, draws = finished_runs(outputs)
    scored = set(rows.loc[rows["study"].isin(STUDIES), "run_id"])
    whole = [own for own in results if own.run_id in scored]
    lines = []
    for scores in variants(whole, draws, OVER):
        for own in agreements(scores):
            for what in AGREEMENTS:
                one = getattr(own, what)
                line = {"value": one.value, "ci_low": one.low, "ci_high": one.high}
                pair = f"{scores.setting.headline}: {own.first}, {own.second}"
                clash = ", ".join(own.conflicting)
                lines.append({"attackers": pair, "what": what, **line, "conflicting": clash})
    return pd.DataFrame(lines)


def agreement_table(found: pd.DataFrame) -> pd.DataFrame:
    """Conflict scores in per cent and correlations, with intervals over images."""
    scale = found["what"].eq("conflicts").map({True: 100.0, False: 1.0})
    parts = (found[name] * scale for name in ("value", "ci_low", "ci_high"))
    cells = [f"{v:.2f} [{a:.2f}, {b:.2f}]" for v, a, b in zip(*parts, strict=True)]
    wide = found.assign(cell=cells).pivot_table(
        index="attackers", columns="what", values="cell", aggfunc="first", sort=False
    )
    clashes = found.groupby("attackers", sort=False)["conflicting"].first().fillna("")
    table = wide[list(AGREEMENTS)].rename(columns={"conflicts": "conflicts (%)"})
    return table.assign(**{"about whom": clashes})


def told(rows: pd.DataFrame, study: str) -> pd.Series:
    """The headline with its interval, per cent, by captioner."""
    own = rows[(rows["study"] == study) & (rows["part"] == "score")].set_index("captioner")
    low, high = own["ci_low"] * 100, own["ci_high"] * 100
    value = own["value"] * 100
    return pd.Series(
        [f"{v:.1f} [{a:.1f}, {b:.1f}]" for v, a, b in zip(value, low, high, strict=True)], own.index
    )


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every captioner under every attacker."""
    table = pd.DataFrame({study: told(rows, study) for study in STUDIES})
    table.insert(0, "planted A→T", pd.Series(A_TO_T))
    return table.reindex([*A_TO_T, *OTHERS]).rename_axis("captioner")


def dial_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How well each score follows the planted dial, over captioners that differ in nothing else."""
    lines = {}
    for study in STUDIES:
        values = part(rows, study, "score").reindex(list(A_TO_T))
        dials = pd.Series(A_TO_T)
        lines[study] = {
            "Spearman": stats.spearmanr(dials, values).statistic,
            "Pearson": stats.pearsonr(dials, values).statistic,
            "largest of the others (absolute)": part(rows, study, "score")
            .reindex(list(OTHERS))
            .abs()
            .max(),
        }
    return pd.DataFrame(lines).T.rename_axis("score")


def masking_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What attackers get from pictures alone, and with the captions of `faithful`, per cent."""
    own = rows[rows["study"] == "masking"]
    wide = own.pivot_table(index="image_masking", columns="part", values="value") * 100
    wanted = [name for name in (*LEAKS, "model") if name in wide]
    return wide.reindex(MASKINGS)[wanted].rename_axis("image_masking")


def write(rows: pd.DataFrame, found: pd.DataFrame) -> None:
    """Write the rows and the tables made of them."""
    keep = rows["part"].isin(["score", "score:accuracy", "score:lic", "model", "human", *LEAKS])
    rows[keep].to_csv(HERE / "rows.csv", index=False, float_format="%.5g")
    found.to_csv(HERE / "agreements.csv", index=False, float_format="%.5g")
    tables = {
        "Planted captioners (per cent)": score_table(rows),
        "Does the score follow the dial?": dial_table(rows),
        "Do two attackers agree?": agreement_table(found),
        "What pictures alone give away (per cent)": masking_table(rows),
    }
    write_results(HERE, {title: markdown(table) for title, table in tables.items()})


def main(arguments: list[str]) -> None:
    if arguments:
        rows = run(Path(arguments[0]))
        write(rows, agreed(rows, Path(arguments[0])))
    else:
        write(*(_read(name) for name in ("rows", "agreements")))


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / f"{name}.csv", keep_default_na=False, na_values=[""])


if __name__ == "__main__":
    main(sys.argv[1:])
