"""DBAC's Table 3 in the paper's columns: its LSTM on all of COCO's captions at hand.

Usage: python -m experiments.language_bias.table3 [DATA_ROOT OUTPUTS]

With arguments C1 to C4 are picked from the captions of coco/annotations, their human parts are
scored, and table3_rows.csv is written; without, the table is made from that.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pandas as pd

from experiments.language_bias.study import LEVELS
from experiments.study import cell, markdown, printed_table, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "table3_rows.csv", HERE / "TABLE3.md"
# The presets' ten epochs of 128 captions are 20 steps here, and 500 on LIC's images; so are these.
STEPS = ("attacker.batch_size=16", "trainer.max_epochs=42")
LSTM = ("encoder=lstm", "head=mlp3", "split=dbac", "scoring.average=captions", *STEPS)
# The column of each metric to its settings, its part and the printed column.
COLUMNS = {
    "omega_H A→T": (("experiment=dbac_table3", *STEPS), "a_to_t:quality:human", "omega_h_a_to_t"),
    "LIC_H": (
        ("experiment=language_bias", "metric=lic", "metric.sides=[human]", *LSTM),
        "human",
        "lic_h",
    ),
    "DPA_H A→T": (
        ("experiment=language_bias", "metric=dpa", "split=dbac"),
        "a_to_t:quality:human",
        "dpa_h_a_to_t",
    ),
}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """Every column on every level."""
    captions = data / "coco" / "annotations" / "captions_val2014.json"
    words = (
        "dataset@dataset.of=coco", f"dataset.of.captions={captions}", "dataset.of.strict=false",
        *_all_images(captions, outputs), "seeds=3", "logger=csv",
    )  # fmt: skip
    frames = []
    for column, (settings, part, _) in COLUMNS.items():
        for level, name in LEVELS.items():
            rows = sweep(name, outputs, *settings, f"dataset.imbalance={level}", *words)
            frames.append(rows[rows["part"] == part].assign(column=column))
    return pd.concat(frames, ignore_index=True)


def _all_images(captions: Path, outputs: Path) -> tuple[str, str]:
    """Files that let the data set read every image: its picked captions give groups and texts.

    The label of an image and its captioner's caption are read, but neither decides which captions
    are picked, nor the group of any.
    """
    first: dict[int, str] = {}
    for line in json.loads(captions.read_text(encoding="utf-8"))["annotations"]:
        first.setdefault(line["image_id"], line["caption"])
    folder = outputs / "first_captions"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"image_id": image, "caption": text} for image, text in first.items()]
    (folder / "first.json").write_text(json.dumps(lines), encoding="utf-8")
    labels = outputs / "labels.csv"
    with labels.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "gender"])
        table.writerows([image, ("Male", "Female")[k % 2]] for k, image in enumerate(first))
    return f"dataset.of.captioners={folder}", f"dataset.of.attributes={labels}"


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each level: each column with the printed one."""
    printed = printed_table("dbac", "3", "")
    lines = {}
    for level in LEVELS.values():
        line = {}
        for column, (_, _, name) in COLUMNS.items():
            score = rows[(rows["study"] == level) & (rows["column"] == column)].iloc[0]
            line[column] = cell(score)
            factor, digits = (100, 0) if score["unit"] == "fraction" else (1, 2)
            line[f"{column}, printed"] = f"{factor * printed.loc[level.lower(), name]:.{digits}f}"
            line["captions"] = str(int(score["n_images"]))
        lines[level] = line
    return pd.DataFrame(lines).T.rename_axis("captions of annotators")


if __name__ == "__main__":
    rows = rows_at(ROWS, run, sys.argv[1:])
    write_page(
        PAGE, "DBAC's Table 3", __file__, {"Three metrics of C1 to C4": markdown(table(rows))}
    )
