"""Files of labels, as they come."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.variants.files import IDS, LABELS, Variant, check, csv

SEX = ("--label-column", "sex")
NUMBERS = {"Male": 1, "Female": 0, "Unsure": "unsure", "Both": "Both"}
ONE_IS_MALE = ("--map", "1=male", "--map", "0=female")


def table(column: str = "gender", **written: object) -> str:
    written_labels = [written.get(label, label) for label in LABELS.values()]
    return csv({"id": list(IDS), column: written_labels})


def numbers(path: Path) -> None:
    known = {"Male": 1.0, "Female": 0.0, "Unsure": 2.0}
    codes = [known.get(label) for label in LABELS.values()]
    pd.DataFrame({"id": list(IDS), "sex": codes}).to_parquet(path)


VARIANTS = [
    Variant("M, F", {"labels.csv": table(Male="M", Female="F")}, "'M' is male, 'F' is female"),
    Variant(
        "MALE, female, unsure",
        {"labels.csv": table(Male="MALE", Female="female", Unsure="unsure")},
        "'MALE' is male, 'unsure' is Unsure",
    ),
    Variant(
        "man, Woman",
        {"labels.csv": table(Male="man", Female="Woman")},
        "'man' is male, 'Woman' is female",
    ),
    Variant(
        "a column `Male` with 1 and -1, as in CelebA",
        {"labels.csv": table("Male", Male=1, Female=-1, Unsure=0, Both=0)},
        "add --label-column Male --map 1=male --map 0=female --map=-1=female",
        code=3,
    ),
    Variant("a column `Gender`", {"labels.csv": table("Gender")}, "gender from 'Gender'"),
    Variant(
        "a column `sex`",
        {"labels.csv": table("sex")},
        "Name yours with --label-column COLUMN (dataset.label_column=COLUMN); found id "
        "('100'), sex ('Male')",
        code=3,
    ),
    Variant("a column `sex`, if an option names it", {"labels.csv": table("sex")}, words=SEX),
    Variant(
        "1 and 0",
        {"labels.csv": table("sex", **NUMBERS)},
        "unknown labels in 'sex': '0', '1' (image 101); labels: '1' 5, '0' 5",
        SEX,
        code=3,
    ),
    Variant(
        "labels 1, 0, Unsure and Both, with a map",
        {"labels.csv": table("sex", **NUMBERS)},
        "2 images belong to no group and are not scored: Both 1, unsure 1 (except by "
        "assumed_group)",
        (*SEX, *ONE_IS_MALE),
    ),
    Variant(
        "1 and -1 with a map",
        {"labels.csv": table("sex", **{**NUMBERS, "Female": -1})},
        "2 images belong to no group",
        (*SEX, "--map", "1=male", "--map=-1=female"),
    ),
    Variant(
        "1.0, 0.0 and missing values in Parquet, with a map",
        {"labels.parquet": numbers},
        "2 images belong to no group and are not scored: empty 1, 2 1 (except by assumed_group)",
        (*SEX, *ONE_IS_MALE, "--map", "2=Unsure"),
    ),
    Variant(
        "True and False with a map",
        {
            "labels.json": json.dumps(
                [
                    {"id": i, "is_male": {"Male": True, "Female": False}.get(label, label)}
                    for i, label in LABELS.items()
                ]
            )
        },
        words=("--label-column", "is_male", "--map", "True=male", "--map", "False=female"),
    ),
    Variant(
        "another word for images of no group, with a map",
        {"labels.csv": table(Unsure="unclear")},
        "Both 1, unclear 1",
        ("--map", "unclear=Unsure"),
    ),
    Variant(
        "`{id: label}`",
        {"labels.json": json.dumps(LABELS)},
        "labels.json: an object of image ids",
        ("--label-column", "label"),
    ),
    Variant(
        "a misspelled label",
        {"labels.csv": table(Female="Femal")},
        "or map them: --map Femal=GROUP (dataset.label_map={Femal: GROUP})",
        code=3,
    ),
    Variant(
        "a map to an unknown group",
        {"labels.csv": table()},
        "attribute 'gender' has no group 'man'; did you mean 'male'?",
        ("--map", "Male=man"),
        code=2,
    ),
    Variant(
        "two different labels for one image",
        {"labels.csv": table() + "100,Female\n"},
        "image id 100 occurs twice with different labels",
        code=3,
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_labels(tmp_path, variant):
    check(tmp_path, variant)
