"""ImageCaptioner2 on planted captioners: does it follow planted bias, and use pictures?

Usage: python -m experiments.imagecaptioner2.study [OUTPUTS]

With OUTPUTS everything is computed and rows.csv and agreements.csv are written; without it, the
tables are made from those that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from scipy import stats

from bias_pipeline.report.page import finished_runs
from bias_pipeline.studies.attacker_agreement import OVER, agreements, variants
from experiments.study import HOLD_OUT, markdown, part, read_rows, sweep, write_results

HERE = Path(__file__).resolve().parent
# Planted amplification from attribute to task; other settings are neutral.
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
    lic = ("metric=lic", *HOLD_OUT)
    frames = [
        *(
            sweep(f"lic {encoder}", outputs, *lic, f"encoder={encoder}", *named, ONE)
            for encoder in ("ngram", "lstm", "minilm")
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
        masked = sweep(masking, outputs, "metric=imagecaptioner2", "encoder=sat", *words)
        frames.append(masked.assign(study="masking", image_masking=masking))
    return pd.concat(frames, ignore_index=True)


def rank_agreements(rows: pd.DataFrame, outputs: Path) -> pd.DataFrame:
    """The agreement of every two attackers of one metric, with intervals from the runs' draws."""
    results, draws = finished_runs(outputs)
    scored = set(rows.loc[rows["study"].isin(STUDIES), "run_id"])
    whole = [agreement for agreement in results if agreement.run_id in scored]
    lines = []
    for scores in variants(whole, draws, OVER):
        for agreement in agreements(scores):
            for what in AGREEMENTS:
                one = getattr(agreement, what)
                line = {"value": one.value, "ci_low": one.low, "ci_high": one.high}
                pair = f"{scores.setting.headline}: {agreement.first}, {agreement.second}"
                clash = ", ".join(agreement.conflicting)
                lines.append({"attackers": pair, "what": what, **line, "conflicting": clash})
    return pd.DataFrame(lines)


def agreement_table(agreements: pd.DataFrame) -> pd.DataFrame:
    """Conflict scores in per cent and correlations, with intervals over images."""
    scale = agreements["what"].eq("conflicts").map({True: 100.0, False: 1.0})
    parts = (agreements[name] * scale for name in ("value", "ci_low", "ci_high"))
    cells = [f"{v:.2f} [{a:.2f}, {b:.2f}]" for v, a, b in zip(*parts, strict=True)]
    wide = agreements.assign(cell=cells).pivot_table(
        index="attackers", columns="what", values="cell", aggfunc="first", sort=False
    )
    clashes = agreements.groupby("attackers", sort=False)["conflicting"].first().fillna("")
    table = wide[list(AGREEMENTS)].rename(columns={"conflicts": "conflicts (%)"})
    return table.assign(**{"about whom": clashes})


def intervals(rows: pd.DataFrame, study: str, part: str = "score") -> pd.Series:
    """A part, such as the headline, with its interval, per cent, by captioner."""
    scores = rows[(rows["study"] == study) & (rows["part"] == part)].set_index("captioner")
    low, high = scores["ci_low"] * 100, scores["ci_high"] * 100
    value = scores["value"] * 100
    return pd.Series(
        [f"{v:.1f} [{a:.1f}, {b:.1f}]" for v, a, b in zip(value, low, high, strict=True)],
        scores.index,
    )


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every captioner under every attacker."""
    table = pd.DataFrame({study: intervals(rows, study) for study in STUDIES})
    table.insert(0, "planted A→T", pd.Series(A_TO_T))
    return table.reindex([*A_TO_T, *OTHERS]).rename_axis("captioner")


def dial_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The correlation of each score with planted bias, over captioners that differ only in that."""
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
    """Attackers' scores on pictures alone, and with the captions of `faithful`, in per cent."""
    selected = rows[rows["study"] == "masking"]
    wide = selected.pivot_table(index="image_masking", columns="part", values="value") * 100
    wanted = [name for name in (*LEAKS, "model") if name in wide]
    return wide.reindex(MASKINGS)[wanted].rename_axis("image_masking")


def write(rows: pd.DataFrame, agreements: pd.DataFrame) -> None:
    """Write the rows and the tables made of them."""
    keep = rows["part"].isin(["score", "score:accuracy", "score:lic", "model", "human", *LEAKS])
    rows[keep].to_csv(HERE / "rows.csv", index=False, float_format="%.5g")
    agreements.to_csv(HERE / "agreements.csv", index=False, float_format="%.5g")
    tables = {
        "Planted captioners (per cent)": score_table(rows),
        "Does the score follow the planted bias?": dial_table(rows),
        "Do two attackers agree?": agreement_table(agreements),
        "What pictures alone leak (per cent)": masking_table(rows),
    }
    write_results(HERE, {title: markdown(table) for title, table in tables.items()})


def main(arguments: list[str]) -> None:
    if arguments:
        rows = run(Path(arguments[0]))
        write(rows, rank_agreements(rows, Path(arguments[0])))
    else:
        write(read_rows(HERE / "rows.csv"), read_rows(HERE / "agreements.csv"))


if __name__ == "__main__":
    main(sys.argv[1:])
