"""ImageCaptioner2 with SAT on real captioners of COCO photos, under several masks of people.

Usage: python -m experiments.imagecaptioner2.real [DATA OUTPUTS [SWEEP ...]]

With DATA (the folder of photos/, coco/ and captioners/) the named sweeps, or all, are run and their
rows in real_rows.csv replaced, so the study can be run in parts, such as grit:oscar, which is one
captioner's; without it, the tables are made from the rows that are there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from experiments.imagecaptioner2.study import ONE, intervals
from experiments.study import (
    HOLD_OUT,
    markdown,
    merge_rows,
    part,
    printed_table,
    read_rows,
    sweep,
    write_page,
)

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "real_rows.csv", HERE / "REAL.md"
# File of captions to name in the printed tables.
CAPTIONERS = {
    **{name: name for name in ("nic", "sat", "fc", "att2in", "transformer", "oscar")},
    "nicplus": "nic_plus",
}
# Kind of mask, to its file and what is painted over.
MASKS = {
    "polygons": ("instances.json", "person_segment"),
    "boxes": ("person_boxes.json", "person_box"),
    "predicted": ("instances_predicted.json", "person_segment"),
}
COMMON = ("seeds=3", "stats.resamples=1000", "logger=csv", "dataset.strict=false")
# The paper has no step that aligns vocabularies.
ATTACK = (
    "metric=imagecaptioner2", "encoder=sat", "alignment=none", "metric.learning_curve=false",
    "metric.leaks=[]",
)  # fmt: skip
# The paper's split and training, on features of a network that was fitted to ImageNet.
BACKBONE = ("encoder.backbone=efficientnet_lite0", "metric.leaks=[]")
PRESETS = {
    "preset": ("experiment=imagecaptioner2_table3", *BACKBONE),
    "grit": ("experiment=imagecaptioner2_table4", *BACKBONE),
    "race": ("experiment=imagecaptioner2_table8", *BACKBONE),
}
SCORES = ("photos", "preset", "grit", "lic", "lic on photos")
LEAKS = ("leak:masked", "leak:silhouette", "leak:blank")
ALONE = " alone"  # ends the name of a sweep of pictures alone, for which any captioner will do


def run(data: Path, outputs: Path, names: Sequence[str]) -> None:
    """Run sweeps, and put the rows of each into the file as it ends."""
    outputs.mkdir(parents=True, exist_ok=True)
    sweeps = _sweeps(data, outputs)
    for wanted in names or sweeps:
        name, _, one = wanted.partition(":")
        captioners = ("sat",) if name.endswith(ALONE) else (one,) if one else CAPTIONERS
        files = ",".join(str(data / "captioners" / f"{captioner}.json") for captioner in captioners)
        words = (f"captioner={files}", "dataset=coco", *COMMON, *sweeps[name])
        rows = name_captioners(sweep(name, outputs, *words))
        parts = LEAKS if name.endswith(ALONE) else ("score", "model", "human")
        rows = merge_rows(read_rows(ROWS), rows[rows["part"].isin(parts)])
        rows.to_csv(ROWS, index=False, float_format="%.6g")


def _sweeps(data: Path, outputs: Path) -> dict[str, tuple[str, ...]]:
    """Sweep to its overrides."""
    photos, coco = data / "photos", data / "coco"
    captions = f"dataset.captions={photos / 'captions.json'}"
    shown = (f"dataset.images={photos / 'images'}", captions)
    labelled = f"dataset.attributes={photos / 'attributes.csv'}"
    boxes = (f"dataset.regions={photos / 'person_boxes.json'}", "image_masking=person_box")
    few = f"dataset.attributes={_masked_all_ways(photos, outputs)}"
    masked = {
        name: (*ATTACK, *shown, few, f"dataset.regions={photos / file}", f"image_masking={how}")
        for name, (file, how) in MASKS.items()
    }
    lic = ("metric=lic", *HOLD_OUT, ONE)
    return {
        "photos": (*ATTACK, *shown, labelled, *boxes),
        **{name: (*words, *shown, labelled, *boxes) for name, words in PRESETS.items()},
        **masked,
        **{
            f"{name}{ALONE}": (*words, f"metric.leaks=[{','.join(LEAKS).replace('leak:', '')}]")
            for name, words in masked.items()
        },
        "lic": (
            *lic,
            f"dataset.attributes={coco / 'attributes' / 'images_val2014.csv'}",
            f"dataset.captions={coco / 'annotations' / 'captions_val2014.json'}",
        ),
        "lic on photos": (*lic, "alignment=none", captions, labelled),
    }


def _masked_all_ways(photos: Path, outputs: Path) -> Path:
    """The labels of the photos that have all three kinds of masks."""
    sets = []
    for file, _ in MASKS.values():
        read = json.loads((photos / file).read_text())
        sets.append({annotation["image_id"] for annotation in read["annotations"]})
    labels = pd.read_csv(photos / "attributes.csv")
    path = outputs / "masked_all_ways.csv"
    labels[labels["id"].isin(set.intersection(*sets))].to_csv(path, index=False)
    return path


def name_captioners(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose captioners have the names of the printed tables."""
    return rows.assign(captioner=rows["captioner"].map(lambda path: CAPTIONERS[Path(path).stem]))


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every captioner under each attacker, with the paper's Table 3."""
    table = pd.DataFrame({study: intervals(rows, study) for study in SCORES})
    printed = printed_table("imagecaptioner2", "3", "")[["ours", "lic"]].add_prefix("Table 3, ")
    table = table.reindex(printed.index.intersection(table.index))
    return table.join(printed).rename_axis("captioner")


def side_table(rows: pd.DataFrame, study: str, table: str, of: str) -> pd.DataFrame:
    """Captioners' scores, both sides, and a column of the paper's."""
    parts = {name: intervals(rows, study, name) for name in ("score", "model", "human")}
    printed = printed_table("imagecaptioner2", table, of)["score"]
    return pd.DataFrame(parts).join(printed.rename("printed")).rename_axis("captioner")


def agreement_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The agreement of rankings of captioners, those of the paper's Table 3 included."""
    printed = printed_table("imagecaptioner2", "3", "")
    scores = {study: part(rows, study, "score") for study in SCORES}
    pairs = {
        "photos and LIC": (scores["photos"], scores["lic"]),
        "photos and LIC on photos": (scores["photos"], scores["lic on photos"]),
        "photos and Table 3": (scores["photos"], printed["ours"]),
        "preset and Table 3": (scores["preset"], printed["ours"]),
        "grit and Table 4": (
            scores["grit"],
            printed_table("imagecaptioner2", "4", "OURS_GRIT")["score"],
        ),
        "preset and grit": (scores["preset"], scores["grit"]),
        "LIC and Table 3's LIC": (scores["lic"], printed["lic"]),
        "Table 3: ours and LIC": (printed["ours"], printed["lic"]),
    }
    return pd.DataFrame({pair: _correlations(*two) for pair, two in pairs.items()}).T.rename_axis(
        "scores"
    )


def mask_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The score under each mask, and what pictures alone leak, per cent."""
    table = pd.DataFrame({name: intervals(rows, name) for name in MASKS})
    leaks = {
        leak: {name: f"{part(rows, name + ALONE, leak).mean():.1f}" for name in MASKS}
        for leak in LEAKS
    }
    return pd.concat([table, pd.DataFrame(leaks).T]).rename_axis("captioner, or input alone")


def mask_agreement(rows: pd.DataFrame) -> pd.DataFrame:
    """Correlation of scores under annotated and under other masks (the paper's Table 6)."""
    annotated = part(rows, "polygons", "score")
    others = {name: part(rows, name, "score") for name in ("boxes", "predicted")}
    lines = {
        f"polygons and {name}": _correlations(annotated, scores) for name, scores in others.items()
    }
    return pd.DataFrame(lines).T.rename_axis("masks")


def _correlations(one: pd.Series, other: pd.Series) -> dict[str, object]:
    both = pd.concat([one, other], axis=1, join="inner").dropna()
    first, second = both.iloc[:, 0], both.iloc[:, 1]
    return {
        "captioners": str(len(both)),
        "Spearman": first.corr(second, method="spearman"),
        "Pearson": first.corr(second),
    }


def write(rows: pd.DataFrame) -> None:
    """Write the tables."""
    counts = rows[rows["part"] == "score"].groupby("study")[["n_images", "n_seeds"]].max()
    counts = counts.astype(int).set_axis(["images", "seeds"], axis=1).rename_axis("sweep")
    tables = {
        "Scores (per cent)": markdown(score_table(rows), 2),
        "GRIT, beside Table 4 (per cent)": markdown(side_table(rows, "grit", "4", "OURS_GRIT")),
        "Race, beside Table 8 (per cent)": markdown(side_table(rows, "race", "8", "OURS_SAT")),
        "Images": markdown(counts),
        "Agreement of rankings": markdown(agreement_table(rows)),
        "Masks (per cent)": markdown(mask_table(rows)),
        "Scores under other masks": markdown(mask_agreement(rows), 3),
    }
    write_page(PAGE, "Real captioners", __file__, tables)


def main(arguments: Sequence[str]) -> None:
    if arguments:
        data, outputs, *names = arguments
        run(Path(data), Path(outputs), names)
    write(read_rows(ROWS))


if __name__ == "__main__":
    main(sys.argv[1:])
