"""Image ids, as they come."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.variants.files import CAPTIONS, IDS, LABELS, Variant, check, csv

LONG = "COCO_val2014_{:012d}.jpg"
READ = "image ids are used without folder and ending"


def captions(form: str) -> str:
    return json.dumps([{"image_id": form.format(i), "caption": t} for i, t in CAPTIONS.items()])


def labels(form: str) -> str:
    return csv({"id": [form.format(i) for i in IDS], "gender": list(LABELS.values())})


def parquet(path: Path) -> None:
    ids = [float(i) for i in IDS]
    pd.DataFrame({"image_id": ids, "caption": list(CAPTIONS.values())}).to_parquet(path)


VARIANTS = [
    Variant("ids as COCO's file names", {"mine.json": captions(LONG)}, READ),
    Variant("labels of padded file names", {"labels.csv": labels("{:012d}.jpg")}, READ),
    Variant(
        "ids as addresses", {"mine.json": captions("https://host/a/{}.jpg?width=640&x=1")}, READ
    ),
    Variant("ids as paths", {"mine.json": captions("val2014/" + LONG)}, READ),
    Variant(
        "file names everywhere, of another ending",
        {"mine.json": captions("{}.png"), "labels.csv": labels("{}.JPEG")},
        READ,
    ),
    Variant("ids as text with zeros", {"mine.json": captions("{:06d}")}),
    Variant("ids as 42.0 in a table", {"labels.csv": labels("{}.0")}, READ),
    Variant("ids as numbers with a fraction in Parquet", {"mine.parquet": parquet}),
    Variant(
        "two folders with files of the same names",
        {
            "mine.json": json.dumps(
                [
                    {"image_id": f"{folder}/{i}.jpg", "caption": "a man"}
                    for folder in "ab"
                    for i in IDS
                ]
            )
        },
        "no caption is of a labelled image: the captions have ids such as a/100.jpg",
        code=3,
    ),
    Variant(
        "ids of another kind",
        {"mine.json": captions("photo-{}")},
        "the captions have ids such as photo-100",
        code=3,
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_ids(tmp_path, variant):
    check(tmp_path, variant)
