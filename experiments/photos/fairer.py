"""Does a captioner that was fitted against its bias stay fairer on real photos, and at what cost?

Usage: python -m experiments.photos.fairer [DATA [OUTPUTS]]

With DATA the captioner of experiments.photos.study is fitted to its photos twice more: drawn by the
weights of `analysis rebalance`, and with the losses of the Equalizer, whose people are hidden by
their outlines. All caption the photos to score; the first also captions photos with blurred
backgrounds and judges its captions itself. Scores are fairer_rows.csv, differences
from the captioner as usual fairer_changes.csv; fairer_naming.csv counts what captions name. Without
DATA the tables are made from these files. What is in OUTPUTS already is not done again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bias_pipeline.stats.compare import holm
from experiments.chain.study import run_once
from experiments.photos.masked import differences, named_by, places, score_table
from experiments.photos.study import (
    COMMON,
    OURS,
    caption,
    divide,
    fit,
    labels_of,
    learnt_photos,
    link_photos,
    naming_rows,
    scored_photos,
)
from experiments.study import cell, markdown, read_rows, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, CHANGES = HERE / "fairer_rows.csv", HERE / "fairer_changes.csv"
NAMING, PAGE = HERE / "fairer_naming.csv", HERE / "FAIRER.md"
USUAL, REBALANCED, EQUALIZED = "as usual", "rebalanced", "equalized"
BLURRED = "as usual, background blurred"
CAPTIONERS = (USUAL, REBALANCED, EQUALIZED, BLURRED)
# Study, part and name of each line.
SCORES = (
    ("quality", "model", "CIDEr-D"),
    ("quality", "score", "CIDEr-D minus people's"),
    ("gender_error", "score", "Wrong gender, of all"),
    ("gender_error", "named", "Wrong gender, of captions that name one"),
    ("gender_ratio", "model", "Men to women"),
    ("group_accuracy", "score", "Gap of groups in accuracy"),
    ("group_accuracy", "group:female", "Women named women"),
    ("group_accuracy", "group:male", "Men named men"),
    ("cooccurrence", "score", "Co-occurrence"),
    ("lic", "score", "LIC"),
    ("lic matched", "score", "LIC at equal style"),
    ("ba_directional", "a_to_t", "BA→ A→T"),
    ("ba_directional", "t_to_a", "BA→ T→A"),
    ("dpa", "a_to_t", "DPA A→T"),
    ("dpa", "t_to_a", "DPA T→A"),
    ("dbac", "a_to_t:shared", "DBAC A→T, people's P"),
    ("dbac", "t_to_a:shared", "DBAC T→A, people's P"),
    ("labels", "t_to_a", "DBAC T→A, prior=labels"),
)
METRICS = ",".join(dict.fromkeys(study for study, _, _ in SCORES[:-1] if " " not in study))
PAIRS = {f"{name} minus {USUAL}": (name, USUAL) for name in CAPTIONERS[1:]}
# The captioner as its own attacker; the words are such as captions contain.
SELF = (
    "metric=imagecaptioner2", "metric.leaks=[]", "encoder=hf",
    "+encoder.prompt.answers.male=man", "+encoder.prompt.answers.female=woman",
    'encoder.prompt.template="a {answer} {caption}"', "image_masking=person_box",
)  # fmt: skip
JUDGED = {"score": "difference", "model": "its captions", "human": "human captions"}


def weights(photos: Path, out: Path, model: Path) -> Path:
    """Weights from the captioner's captions of the photos that it learnt from."""
    labels = labels_of(out / "train.csv")
    labelled = [image for image, label in labels.items() if label in ("male", "female")]
    file = caption(link_photos(photos, labelled, out / "learnt_images"), model, "learnt")
    runs = out / "learnt_runs"
    objects = photos.parent / "coco" / "annotations" / "instances_val2014.json"
    learnt = (
        *(word for word in learnt_photos(photos, out) if not word.startswith("captioner=")),
        f"dataset.instances={objects}", f"paths.cache={out / 'cache'}", "dataset.strict=false",
    )  # fmt: skip
    counting = ("metric=cooccurrence", f"captioner={file}", f"paths.outputs={runs}", "logger=csv")
    run_once(runs, *learnt, *counting)
    (run,) = runs.glob("cooccurrence-*")
    table = out / "weights.parquet"
    run_once(
        table, "analysis", "rebalance", str(run), *learnt, "captioner=none", "--out", str(table)
    )
    return table


def captions(photos: Path, out: Path) -> dict[str, Path]:
    """The file of captions of each captioner, and one of photos with blurred backgrounds."""
    usual = fit(photos, out)
    rebalanced = fit(photos, out, "rebalanced", "--weights", str(weights(photos, out, usual)))
    outlines = places(photos, out)["outlines"]
    hiding = ("image_masking=person_segment", f"dataset.regions={outlines}")
    equalized = fit(photos, out, EQUALIZED, "--equalizer", *hiding)
    scored = link_photos(photos, labels_of(out / "test.csv"), out / "scored")
    blur = ("--image-masking", "background", "--regions", str(outlines))
    return {
        USUAL: caption(out / "images", usual, OURS),
        REBALANCED: caption(scored, rebalanced, rebalanced.name),
        EQUALIZED: caption(scored, equalized, equalized.name),
        BLURRED: caption(scored, usual, f"{OURS}_blurred", *blur),
    }


def run(data: Path, out: Path = Path("outputs/photos")) -> pd.DataFrame:
    """Rows of all sweeps; also writes the other tables."""
    photos = data / "photos"
    out.mkdir(parents=True, exist_ok=True)
    divide(photos, out)
    files = captions(photos, out)
    naming_rows(files, labels_of(out / "test.csv")).to_csv(NAMING, index=False, float_format="%.6g")
    words = (*scored_photos(photos, out), *COMMON[1:])
    everyone = (*words, "captioner=" + ",".join(map(str, files.values())))
    frames = [
        sweep("scores", out, *everyone, f"metric={METRICS}"),
        sweep("lic matched", out, *everyone, "metric=lic", "alignment=matched"),
        sweep("labels", out, *everyone, "metric=dbac", "metric.prior=labels"),
    ]
    rows = named_by(pd.concat(frames, ignore_index=True), files)
    rows["study"] = rows["study"].where(rows["study"] != "scores", rows["metric"])
    pictures = (f"dataset.regions={out / 'boxes.json'}", f"encoder.model={out / OURS}")
    judged = sweep("self", out, *words, *SELF, *pictures, f"captioner={files[USUAL]}")
    shown = rows["part"].isin({part for _, part, _ in SCORES} | {"human"})
    differences(rows, out, SCORES, PAIRS).to_csv(CHANGES, index=False, float_format="%.6g")
    judged = named_by(judged[judged["part"].isin(JUDGED)], files)
    return pd.concat([rows[shown], judged], ignore_index=True)


def change_table(changes: pd.DataFrame) -> pd.DataFrame:
    """Differences; those are marked whose p is below 0.05 after Holm's correction of all."""
    shown = score_table(changes, SCORES, tuple(PAIRS))
    titles = {(study, part): title for study, part, title in SCORES}
    for (_, line), p in zip(changes.iterrows(), holm(changes["p_value"].tolist()), strict=True):
        if p < 0.05:
            shown.loc[titles[line["study"], line["part"]], line["captioner"]] += " *"
    return shown


def write(rows: pd.DataFrame) -> None:
    """Write the tables."""
    naming = pd.read_csv(NAMING).set_index("captioner")
    shares = ["none", "right", "wrong", "men"]
    naming[shares] *= 100
    judged = rows[rows["study"] == "self"].set_index("part")
    itself = {title: cell(judged.loc[part]) for part, title in JUDGED.items()}
    tables = {
        "Scores (per cent where they are fractions)": markdown(
            score_table(rows, SCORES, CAPTIONERS)
        ),
        "Minus the captioner as usual (*: p < 0.05 after Holm)": markdown(
            change_table(read_rows(CHANGES))
        ),
        "ImageCaptioner2, the captioner as usual being its own attacker (per cent)": markdown(
            pd.Series(itself, name="score").to_frame().rename_axis("captions")
        ),
        "What captions name (per cent)": markdown(naming[["images", *shares]], 1),
    }
    write_page(PAGE, "Fitted against bias", __file__, tables)


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
