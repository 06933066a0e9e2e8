"""Image ids, as they come."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

from tests.variants.files import CAPTIONS, IDS, LABELS, PEOPLE, Variant, check, csv

LONG = "COCO_val2014_{:012d}.jpg"
READ = "image ids are used without folder and ending"


def captions(form: str) -> str:
    return json.dumps([{"image_id": form.format(i), "caption": t} for i, t in CAPTIONS.items()])


def labels(form: str) -> str:
    return csv({"id": [form.format(i) for i in IDS], "gender": list(LABELS.values())})


def parquet(path: Path) -> None:
    ids = [float(i) for i in IDS]
    pd.DataFrame({"image_id": ids, "caption": list(CAPTIONS.values())}).to_parquet(path)


NUMBERS = dict(zip(IDS, [*IDS[5:], *IDS[:5]], strict=True))  # of an annotation program


def coco_form(captions: Mapping[int, Sequence[str]], number: Mapping[int, int] = NUMBERS) -> str:
    return json.dumps(
        {
            "images": [{"id": number[i], "file_name": f"{i:06d}.jpg"} for i in IDS],
            "annotations": [
                {"id": 10 * i + k, "image_id": number[i], "caption": text}
                for i, texts in captions.items()
                for k, text in enumerate(texts)
            ],
        }
    )


def texts(path: Path) -> None:
    path.mkdir()
    for i, text in CAPTIONS.items():
        (path / f"{i:06d}.txt").write_text(text)


BY_NAME = "joined by file_name, not by image id: names find 12 of 12 images, ids "
VARIANTS = [
    Variant("ids as COCO's file names", {"mine.json": captions(LONG)}, READ),
    Variant(
        "labels whose file names are padded with zeros", {"labels.csv": labels("{:012d}.jpg")}, READ
    ),
    Variant(
        "ids as addresses", {"mine.json": captions("https://host/a/{}.jpg?width=640&x=1")}, READ
    ),
    Variant("ids as paths", {"mine.json": captions("val2014/" + LONG)}, READ),
    Variant(
        "file names whose endings differ between files",
        {"mine.json": captions("{}.png"), "labels.csv": labels("{}.JPEG")},
        READ,
    ),
    Variant("ids as text, padded with zeros", {"mine.json": captions("{:06d}")}),
    Variant(
        "ids as 42.0 in a table", {"labels.csv": labels("{}.0")}, "image ids are read as numbers"
    ),
    Variant("ids as floating-point numbers in Parquet", {"mine.parquet": parquet}),
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
        "human captions with image numbers of an annotation program",
        {"people.json": coco_form(PEOPLE)},
        f"people.json: {BY_NAME}12",
    ),
    Variant(
        "captions in COCO's form with other image numbers",
        {"mine.json": coco_form({i: [t] for i, t in CAPTIONS.items()}, {i: i + 900 for i in IDS})},
        f"mine.json: {BY_NAME}0",
    ),
    Variant(
        "labels with both a file name and a number",
        {
            "labels.csv": csv(
                {
                    "id": list(range(len(IDS))),
                    "file_name": [f"{i:06d}.jpg" for i in IDS],
                    "gender": list(LABELS.values()),
                }
            )
        },
        f"labels.csv: {BY_NAME}0",
    ),
    Variant(
        "a folder with one `.txt` for each image",
        {"mine": texts},
        "mine: captions from 12 files .txt",
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
