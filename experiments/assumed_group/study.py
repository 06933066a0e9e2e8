"""What seven captioners write about people whose gender or skin tone annotators could not tell.

Usage: python -m experiments.assumed_group.study [DATA [OUTPUTS]]

With DATA, the folder that holds ``coco`` and ``captioners``, all cells are run and rows.csv is
written; without it, the tables are made from the rows that are there.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pandas as pd

from bias_pipeline.report.page import finished_runs
from experiments.assumed_group.tables import table_texts
from experiments.study import rows_of, standings, sweep, write_results

HERE = Path(__file__).resolve().parent
# The file of each captioner's captions; nic's are those that fit its published Error and Ratio.
FILES = {
    "nic": "nic",
    "sat": "sat",
    "fc": "fc",
    "att2in": "att2in",
    "transformer": "transformer",
    "oscar": "oscar_cider",
    "nic_plus": "nicplus",
}
# Whose images: those that every captioner describes, and all that each one does.
STUDIES = ("common", "all")
COLUMNS = [
    "study", "attribute", "metric", "metric_version", "captioner", "part", "value", "unit",
    "ci_low", "ci_high", "p_value", "n_images", "n_seeds", "coverage",
    "neutral_rate", "sign", "unfairness", "letters",
]  # fmt: skip


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The rows of all cells; captioners that share a letter do not differ significantly."""
    outputs.mkdir(parents=True, exist_ok=True)
    labels = {"common": outputs / "common.csv", "all": data / "coco/attributes/images_val2014.csv"}
    write_common(data, labels["all"], labels["common"])
    return pd.concat([_rows(name, data, outputs / name, labels[name]) for name in STUDIES])


def _rows(study: str, data: Path, outputs: Path, labels: Path) -> pd.DataFrame:
    rows = sweep(
        study,
        outputs,
        "metric=assumed_group,gender_error",
        "attribute=gender,race",
        "dataset=coco",
        "dataset.strict=false",
        f"dataset.attributes={labels}",
        f"dataset.captions={data / 'coco/annotations/captions_val2014.json'}",
        f"dataset.captioners={data / 'captioners'}",
        f"captioner={','.join(FILES.values())}",
        "logger=csv",
    )
    results, draws = finished_runs(outputs)
    placed = rows.merge(standings(results, draws), on=["run_id", "part"], how="left")
    names = {stem: name for name, stem in FILES.items()}
    retained = (placed["metric"] == "assumed_group") | (placed["part"] == "score")
    return placed.assign(captioner=placed["captioner"].map(names)).loc[retained, COLUMNS]


def write_common(data: Path, labels: Path, path: Path) -> None:
    """Write the labels of the images that every captioner describes."""
    described = [
        {row["image_id"] for row in json.loads((data / f"captioners/{stem}.json").read_text())}
        for stem in FILES.values()
    ]
    common = set.intersection(*described)
    with labels.open(newline="") as file, path.open("w", newline="") as to:
        reader = csv.DictReader(file)
        writer = csv.DictWriter(to, reader.fieldnames or ())
        writer.writeheader()
        writer.writerows(row for row in reader if int(row["id"]) in common)


if __name__ == "__main__":
    write_results(HERE, table_texts(rows_of(HERE, run, sys.argv[1:])))
