"""Files of people's captions, as they come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.variants.files import PEOPLE, Variant, check, csv

PAIRS = [(i, text) for i, texts in PEOPLE.items() for text in texts]
KARPATHY = [{"cocoid": i, "sentences": [{"raw": t} for t in own]} for i, own in PEOPLE.items()]

VARIANTS = [
    Variant(
        "people's captions as `{id: [five captions]}`",
        {"people.json": json.dumps(PEOPLE)},
        told="people.json: an object of image ids",
    ),
    Variant(
        "people's captions in Karpathy's file",
        {"people.json": json.dumps({"images": KARPATHY})},
        told="the list under 'images', image ids from 'cocoid', people's captions from 'sentences'",
    ),
    Variant(
        "people's captions as a table with `reference`",
        {"people.csv": csv({"image": [i for i, _ in PAIRS], "reference": [t for _, t in PAIRS]})},
        told="image ids from 'image', people's captions from 'reference'",
    ),
    Variant(
        "people's captions under an unknown name, named",
        {"people.csv": csv({"image_id": [i for i, _ in PAIRS], "alt": [t for _, t in PAIRS]})},
        ("--human-caption-column", "alt"),
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_people(tmp_path: Path, variant: Variant) -> None:
    check(tmp_path, variant)
