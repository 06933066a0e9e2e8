"""ImageCaptioner2 without pixels, on all labelled images of COCO, compared with LIC.

Usage: python -m experiments.imagecaptioner2.annotated [DATA [OUTPUTS]]

With DATA (the folder of coco/ and captioners/) everything is computed and annotated_rows.csv and
annotated_agreements.csv are written; without it, the tables are made from those that are there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from bias_pipeline.report.page import finished_runs
from bias_pipeline.stats.bootstrap import Draws
from bias_pipeline.studies.attacker_agreement import Setting, Variants, agreements
from experiments.imagecaptioner2.real import ATTACK, CAPTIONERS, COMMON, name_captioners
from experiments.imagecaptioner2.study import ONE, intervals
from experiments.study import HOLD_OUT, markdown, part, printed_table, read_rows, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, AGREEMENTS = HERE / "annotated_rows.csv", HERE / "annotated_agreements.csv"
PAGE = HERE / "ANNOTATED.md"
ATTACKERS = {
    "annotations": (*ATTACK, "encoder.backbone=annotations", "metric.leaks=[]"),
    "lic": ("metric=lic", *HOLD_OUT, ONE),
}
# Attribute to the printed scores of SAT and of LIC: table, part and column.
PRINTED = {
    "gender": {"Table 3, ours": ("3", "", "ours"), "Table 3, lic": ("3", "", "lic")},
    "race": {
        "Table 8, ours": ("8", "OURS_SAT", "score"),
        "Table 8, lic": ("8", "LIC_LSTM", "score"),
    },
}
SIDES = ("model:paired", "human:paired")
MEASURES = ("pearson", "spearman")


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """Rows of all sweeps."""
    outputs.mkdir(parents=True, exist_ok=True)
    coco = data / "coco" / "annotations"
    words = (
        f"captioner={','.join(str(data / 'captioners' / f'{name}.json') for name in CAPTIONERS)}",
        "dataset=coco",
        f"dataset.attributes={_described_labels(data / 'coco', outputs)}",
        f"dataset.captions={coco / 'captions_val2014.json'}",
        f"dataset.instances={coco / 'instances_val2014.json'}",
        *COMMON,
    )
    frames = [
        sweep(
            f"{attacker} {attribute}", outputs, *words_of_attacker, f"attribute={attribute}", *words
        )
        for attribute in PRINTED
        for attacker, words_of_attacker in ATTACKERS.items()
    ]
    return name_captioners(pd.concat(frames, ignore_index=True))


def _described_labels(coco: Path, outputs: Path) -> Path:
    """The labels of images with human captions; others have no score, and cost a third more."""
    captions = json.loads((coco / "annotations" / "captions_val2014.json").read_text())
    described = {annotation["image_id"] for annotation in captions["annotations"]}
    labels = pd.read_csv(coco / "attributes" / "images_val2014.csv", keep_default_na=False)
    path = outputs / "described.csv"
    labels[labels["id"].isin(described)].to_csv(path, index=False)
    return path


def rank_agreements(rows: pd.DataFrame, outputs: Path) -> pd.DataFrame:
    """The agreement of every two rankings of captioners, with intervals over images."""
    draws = finished_runs(outputs)[1]
    lines = []
    for attribute in PRINTED:
        scores = _beside_printed(rows, draws, attribute)
        for agreement in agreements(scores):
            if agreement.first not in ATTACKERS:
                continue  # both are printed
            at = [scores.variants.index(name) for name in (agreement.first, agreement.second)]
            pairing = {
                "attribute": attribute,
                "scores": f"{agreement.first} and {agreement.second}",
            }
            p_value = _exact_p(*(scores.values[:, i] for i in at))  # noqa: PD011 - no table
            for what in MEASURES:
                one = getattr(agreement, what)
                line = {"what": what, "value": one.value, "low": one.low, "high": one.high}
                lines.append({**pairing, **line, "p": p_value if what == "spearman" else np.nan})
    return pd.DataFrame(lines)


def _beside_printed(
    rows: pd.DataFrame, draws: Mapping[str, Mapping[str, Draws]], attribute: str
) -> Variants:
    """Agreement of our scores with the printed ones, which no resampling changes."""
    captioners = tuple(CAPTIONERS.values())
    values, drawn = [], []
    for attacker in ATTACKERS:
        scores = rows[(rows["study"] == f"{attacker} {attribute}") & (rows["part"] == "score")]
        runs = scores.set_index("captioner").loc[list(captioners)]
        values.append(runs["value"].to_numpy())
        resampled = [draws[run]["score"].resampled.mean(axis=1) for run in runs["run_id"]]
        drawn.append(np.stack(resampled, axis=1))
    for column in printed_scores(attribute).to_numpy().T:
        values.append(column)
        drawn.append(np.broadcast_to(column, drawn[0].shape))
    names = (*ATTACKERS, *PRINTED[attribute])
    neutral = np.zeros(len(names))
    setting = Setting("score", attribute)
    return Variants(
        setting, captioners, names, np.stack(values, 1), neutral, np.stack(drawn, axis=2)
    )


def printed_scores(attribute: str) -> pd.DataFrame:
    """The paper's scores of our captioners, per cent."""
    columns = {
        name: printed_table("imagecaptioner2", table, of)[column]
        for name, (table, of, column) in PRINTED[attribute].items()
    }
    return pd.DataFrame(columns).loc[list(CAPTIONERS.values())]


def _exact_p(one: np.ndarray, other: np.ndarray) -> float:
    """The two-sided p of Spearman's coefficient, over all orders of the captioners."""
    test = stats.permutation_test(
        (one,),
        lambda permuted: stats.spearmanr(permuted, other).statistic,
        permutation_type="pairings",
        n_resamples=np.inf,
        vectorized=False,
    )
    return float(test.pvalue)


def score_table(rows: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Every captioner under both attackers, with the paper's scores and SAT's two sides."""
    table = pd.DataFrame(
        {attacker: intervals(rows, f"{attacker} {attribute}") for attacker in ATTACKERS}
    )
    table = table.loc[list(CAPTIONERS.values())].join(printed_scores(attribute))
    sides = {side: part(rows, f"annotations {attribute}", side) for side in SIDES}
    return table.join(pd.DataFrame(sides)).rename_axis("captioner")


def agreement_table(agreements: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Correlations over captioners, with intervals over images and an exact p over captioners."""
    selected = agreements[agreements["attribute"] == attribute]
    ends = (selected["value"], selected["low"], selected["high"])
    cells = selected.assign(
        cell=[f"{v:.2f} [{a:.2f}, {b:.2f}]" for v, a, b in zip(*ends, strict=True)]
    ).pivot_table(index="scores", columns="what", values="cell", aggfunc="first", sort=False)
    p_value = selected.groupby("scores", sort=False)["p"].max().rename("p of Spearman, exact")
    return cells.loc[:, list(MEASURES)].join(p_value)


def write(rows: pd.DataFrame, agreements: pd.DataFrame) -> None:
    """Write the tables."""
    scored = rows[rows["part"] == "score"].groupby("study", sort=False)
    images = scored[["n_images", "n_seeds"]].max().astype(int).astype(str)
    tables = {"Images": markdown(images.rename_axis("sweep"))}
    for attribute in PRINTED:
        of = attribute.capitalize()
        tables[f"{of}: scores (per cent)"] = markdown(score_table(rows, attribute))
        tables[f"{of}: agreement of rankings"] = markdown(agreement_table(agreements, attribute), 3)
    write_page(PAGE, "Annotations instead of pixels", __file__, tables)


def main(arguments: list[str]) -> None:
    if arguments:
        outputs = Path(arguments[1] if len(arguments) > 1 else "outputs/imagecaptioner2_annotated")
        rows = run(Path(arguments[0]), outputs)
        keep = rows["part"].isin(["score", *SIDES])
        rows[keep].to_csv(ROWS, index=False, float_format="%.5g")
        rank_agreements(rows, outputs).to_csv(AGREEMENTS, index=False, float_format="%.5g")
    rows = read_rows(ROWS)
    write(rows, pd.read_csv(AGREEMENTS))


if __name__ == "__main__":
    main(sys.argv[1:])
