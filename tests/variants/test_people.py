"""Files of human captions, as they come."""

import json

import numpy as np
import pytest

from tests.variants.files import PEOPLE, Variant, check, csv

PAIRS = [(i, text) for i, texts in PEOPLE.items() for text in texts]
KARPATHY = [
    {
        "filename": f"{i}.jpg",
        "imgid": number,
        "split": "train",
        "sentids": [number],
        "sentences": [{"raw": t, "imgid": number, "sentid": number} for t in item],
    }
    for number, (i, item) in enumerate(PEOPLE.items())
]
OF_COCO = [
    {**image, "filepath": "val2014", "cocoid": i} for i, image in zip(PEOPLE, KARPATHY, strict=True)
]
TABLE = {
    "raw": ['"' + json.dumps(texts).replace('"', '""') + '"' for texts in PEOPLE.values()],
    "sentids": ["[0]" for _ in PEOPLE],
    "filename": [f"{i}.jpg" for i in PEOPLE],
    "img_id": list(range(len(PEOPLE))),
}
SIDE_BY_SIDE = {f"cap{k + 1}": [item[k] for item in PEOPLE.values()] for k in range(2)}
ARRAYS = [f'"{np.array(texts)}"' for texts in PEOPLE.values()]

VARIANTS = [
    Variant(
        "human captions as `{id: [five captions]}`",
        {"people.json": json.dumps(PEOPLE)},
        "people.json: an object of image ids",
    ),
    Variant(
        "human captions in Karpathy's file",
        {"people.json": json.dumps({"images": OF_COCO})},
        "the list under 'images', image ids from 'cocoid', human captions from 'sentences'",
    ),
    Variant(
        "human captions in Karpathy's file for Flickr",
        {"people.json": json.dumps({"images": KARPATHY})},
        "the list under 'images', image ids from 'filename', human captions from 'sentences'",
    ),
    Variant(
        "human captions in Karpathy's file as a table",
        {"people.csv": csv(TABLE)},
        "people.csv: image ids from 'filename', human captions from 'raw'",
    ),
    Variant(
        "human captions of other images",
        {"people.json": json.dumps({f"9{i}": texts for i, texts in PEOPLE.items()})},
        "people.json: no caption is of a labelled image",
        code=3,
    ),
    Variant(
        "human captions in a column `reference`",
        {"people.csv": csv({"image": [i for i, _ in PAIRS], "reference": [t for _, t in PAIRS]})},
        "image ids from 'image', human captions from 'reference'",
    ),
    Variant(
        "human captions as a printed NumPy array",
        {"people.csv": csv({"image_id": list(PEOPLE), "caption": ARRAYS})},
        "12 cells of 'caption' are printed lists, whose texts are read",
    ),
    Variant(
        "human captions in one cell, separated by semicolons",
        {"people.csv": csv({"image_id": list(PEOPLE), "caption": map("; ".join, PEOPLE.values())})},
        "human captions from cells with mostly 2 captions, separated by ';', such as "
        "'a person stands",
    ),
    Variant(
        "human captions in one cell, separated by line ends",
        {"people.json": json.dumps({i: "\n".join(texts) for i, texts in PEOPLE.items()})},
        "human captions from cells with mostly 2 captions, separated by 'line ends'",
    ),
    Variant(
        "human captions in one cell, with a separator that only some cells have",
        {"people.json": json.dumps({i: "; ".join(t[: 1 + i % 3]) for i, t in PEOPLE.items()})},
        "Add dataset.separator=semicolon if it is between captions, or dataset.separator=none",
        code=3,
    ),
    Variant(
        "human captions in several columns (`cap1`, `cap2`)",
        {"people.csv": csv({"image_id": list(PEOPLE), **SIDE_BY_SIDE})},
        "people.csv: human captions from 2 columns, 'cap1' and so on",
    ),
    Variant(
        "human captions as a list of mappings in Hugging Face's datasets",
        {
            "people.json": json.dumps(
                [
                    {"image_id": i, "sentences": {"raw": t, "sentid": [1, 2]}}
                    for i, t in PEOPLE.items()
                ]
            )
        },
        "people.json: human captions from 'sentences'",
    ),
    Variant(
        "human captions in Flickr30k's `results.csv` (`image_name| comment_number| comment`)",
        {
            "people.csv": "image_name| comment_number| comment\n"
            + "".join(f"{i}.jpg| {k}| {t}\n" for k, (i, t) in enumerate(PAIRS))
        },
        "image ids from 'image_name', human captions from 'comment'",
    ),
    Variant(
        "human captions in a column with an unknown name, if an option gives this name",
        {"people.csv": csv({"image_id": [i for i, _ in PAIRS], "alt": [t for _, t in PAIRS]})},
        words=("--human-caption-column", "alt"),
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_people(tmp_path, variant):
    check(tmp_path, variant)
