"""A folder of pickles like the published one, filled with made-up captions."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

SAT = "Show-Attend-Tell/gender_val_sat_cap_mw_entries.pkl"
FC = "Att2in_FC/gender_val_fc_cap_mw_entries.pkl"
HUMAN = "Human_Ann/gender_obj_cap_mw_entries.pkl"


def entries(n: int = 80, seed: int = 0) -> list[dict[str, Any]]:
    """Model entries of n images, every second one of a woman."""
    generator = np.random.default_rng(seed)
    return [
        {
            "img_id": 100 + i,
            "pred": f"a person with a {generator.choice(['kite', 'cake', 'bus'])}",
            "bb_gender": ("Male", "Female")[i % 2],
            "bb_skin": "Light",
            "ratio": "[0.1]",
            "race": "['Light']",
            "split": "train",
        }
        for i in range(n)
    ]


def human_entries(n: int = 60) -> list[dict[str, Any]]:
    """Human entries of the first n images."""
    return [
        {**entry, "caption_list": [f"somebody holds a kite {k}" for k in range(5)]}
        for entry in entries(n)
    ]


def write_folder(root: Path, files: dict[str, Any] | None = None) -> Path:
    """Write the folder; ``files`` replaces or adds single files (bytes are written as they are)."""
    content: dict[str, Any] = {SAT: entries(), FC: entries(seed=1), HUMAN: human_entries()}
    content["model_vocab/sat_vocab.pkl"] = ["<unk>", "<pad>", "a", "person", "with"]
    for name, data in {**content, **(files or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else pickle.dumps(data))
    return root
