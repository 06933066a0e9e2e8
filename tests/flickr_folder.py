"""A folder like that of Flickr30k, filled with made-up captions."""

import json
from pathlib import Path
from typing import Any

from tests.coco_folder import results

FILES = [f"10000{100 + i}.jpg" for i in range(60)]
TEXTS = [[f"somebody holds a kite {i} {k}" for k in range(5)] for i in range(60)]


def karpathy() -> dict[str, Any]:
    """Karpathy's file; every third image is of the test part."""
    return {
        "dataset": "flickr30k",
        "images": [
            {
                "imgid": i,
                "sentids": [5 * i + k for k in range(5)],
                "filename": name,
                "split": ("test", "train", "val")[i % 3],
                "sentences": [
                    {"raw": text, "tokens": text.split(), "imgid": i, "sentid": 5 * i + k}
                    for k, text in enumerate(TEXTS[i])
                ],
            }
            for i, name in enumerate(FILES)
        ],
    }


def tokens() -> str:
    """The original file."""
    lines = [f"{name}#{k}\t{TEXTS[i][k]}" for i, name in enumerate(FILES) for k in range(5)]
    return "\n".join(lines) + "\n"


def bars() -> str:
    """Kaggle's file; a line of it lacks its second bar."""
    lines = [f"{name}| {k}| {TEXTS[i][k]}" for i, name in enumerate(FILES) for k in range(5)]
    lines[7] = lines[7].replace("| 2| ", "| 2   ")
    return "\n".join(["image_name| comment_number| comment", *lines]) + "\n"


def write_folder(root: Path, human: dict[str, Any] | str | None = None) -> Path:
    """Write the folder; human captions as Karpathy's file (a dict) or the original one (text)."""
    captions = karpathy() if human is None else human
    labels = [f"{name[:-4]},{('male', 'female')[i % 2]}" for i, name in enumerate(FILES)]
    mine = [{**row, "image_id": name} for row, name in zip(results(), FILES, strict=True)]
    content = {
        "attributes.csv": "\n".join(["image_id,gender", *labels]),
        "captioners/mine.json": json.dumps(mine),
    }
    if isinstance(captions, str):
        content["results.csv" if "| 0| " in captions else "results_20130124.token"] = captions
    else:
        content["dataset_flickr30k.json"] = json.dumps(captions)
    for name, text in content.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
