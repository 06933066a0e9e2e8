"""A folder of files in COCO's formats, filled with made-up captions."""

import json
from pathlib import Path
from typing import Any

import numpy as np

CAPTIONS, INSTANCES = "annotations/captions_val2014.json", "annotations/instances_val2014.json"
LABELS, MINE = "attributes/images_val2014.csv", "captioners/mine.json"


def results(n: int = 60) -> list[dict[str, Any]]:
    """A captioner's captions of images 100, 101, ..."""
    generator = np.random.default_rng(0)
    things = generator.choice(["kite", "cake", "bus"], n)
    return [{"image_id": 100 + i, "caption": f"a person with a {things[i]}"} for i in range(n)]


def human(n: int = 50) -> dict[str, Any]:
    """Two human captions of each of the first n images."""
    texts = [(100 + i, f"somebody holds a kite {k}") for i in range(n) for k in range(2)]
    return {
        "images": [{"id": 100 + i} for i in range(n)],
        "annotations": [
            {"id": 7 + k, "image_id": image, "caption": text}
            for k, (image, text) in enumerate(texts)
        ],
    }


def instances(n: int = 60) -> dict[str, Any]:
    """A person in every image, a kite in every third."""
    pairs = [(100 + i, 1) for i in range(n)] + [(100 + i, 38) for i in range(0, n, 3)]
    return {
        "images": [{"id": 100 + i} for i in range(n)],
        "categories": [{"id": 1, "name": "person"}, {"id": 38, "name": "kite"}],
        "annotations": [
            {"id": k, "image_id": i, "category_id": c} for k, (i, c) in enumerate(pairs)
        ],
    }


def labels(n: int = 60) -> str:
    """Princeton's columns, every second image of a woman, the last three of no group."""
    genders = [*(("Male", "Female")[i % 2] for i in range(n - 3)), "Unsure", "Both", ""]
    lines = [f"{100 + i},{genders[i]},Light,{('train', 'val')[i % 3 == 0]}" for i in range(n)]
    return "\n".join(["id,bb_gender,bb_skin,split", *lines]) + "\n"


def write_folder(root: Path, files: dict[str, Any] | None = None) -> Path:
    """Write the folder; ``files`` replaces or adds files, text and bytes as they are."""
    content = {CAPTIONS: human(), INSTANCES: instances(), LABELS: labels(), MINE: results()}
    for name, data in {**content, **(files or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = data if isinstance(data, str | bytes) else json.dumps(data)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return root
