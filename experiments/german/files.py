"""Multi30k's independent English and German descriptions as files, labelled by English words.

An image is labelled if three or more of its five English descriptions name one gender, and none
names the other.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.run.presets import preset
from bias_pipeline.text.mentions import NO_GROUP, named_group

LEAST = 3  # descriptions that name the gender
LANGUAGES = ("en", "de")


def write_files(data: Path, split: str, out: Path) -> None:
    """Write ``en.json``, ``de.json`` and ``labels.csv`` of one split."""
    out.mkdir(parents=True, exist_ok=True)
    ids = (data / f"image_splits/{split}_images.txt").read_text("utf-8").split()
    for language in LANGUAGES:
        lines = [
            {"image_id": key, "caption": text}
            for texts in descriptions(data, split, language)
            for key, text in zip(ids, texts, strict=True)
        ]
        (out / f"{language}.json").write_text(json.dumps(lines, ensure_ascii=False), "utf-8")
    gender = preset({"attribute": "gender"}, {"dataset": "coco"}).build("attribute")
    named = np.stack(
        [
            named_group(Captions.from_texts(texts), gender, gender.groups)
            for texts in descriptions(data, split, "en")
        ]
    )
    with (out / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "gender"])
        for code, group in enumerate(gender.groups):
            unanimous = ((named == code) | (named == NO_GROUP)).all(axis=0)
            chosen = np.flatnonzero(unanimous & ((named == code).sum(axis=0) >= LEAST))
            table.writerows([ids[row], group] for row in chosen)


def descriptions(data: Path, split: str, language: str) -> list[list[str]]:
    """Five lists with a description of each image."""
    names = [data / f"raw/{split}.{number}.{language}.gz" for number in range(1, 6)]
    return [gzip.decompress(name.read_bytes()).decode("utf-8").splitlines() for name in names]


if __name__ == "__main__":
    write_files(Path(sys.argv[1]) / "multi30k/task2", sys.argv[2], Path(sys.argv[3]))
