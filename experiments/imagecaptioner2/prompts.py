"""How the words of the prompt change ImageCaptioner2's score.

Usage: python -m experiments.imagecaptioner2.prompts [OUTPUTS]

With OUTPUTS everything is computed and prompt_rows.csv is written; without it, the table is made
from those.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bias_pipeline.run import compose
from experiments.imagecaptioner2.study import COMMON
from experiments.study import cell, markdown, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "prompt_rows.csv", HERE / "PROMPTS.md"
PROMPTS = {
    "the paper's": "suffix",
    "a question": "question",
    "the answer alone": "bare",
    "before the caption": "cloze",
}
CAPTIONERS = ("dampener", "faithful", "amplifier")
# Objects of a scene instead of its pixels: each cell trains six networks.
CELL = ("metric=imagecaptioner2", "encoder=sat", "encoder.backbone=annotations", "metric.leaks=[]")
PARTS = ("score", "model", "human")


def run(outputs: Path) -> pd.DataFrame:
    """Rows of every captioner under every prompt."""
    captioners = f"captioner={','.join(CAPTIONERS)}"
    frames = [
        sweep(name, outputs, *CELL, captioners, f"prompt={prompt}", *COMMON)
        for name, prompt in PROMPTS.items()
    ]
    rows = pd.concat(frames, ignore_index=True)
    return rows[rows["part"].isin(PARTS)]


def table(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """One line per prompt, one column per captioner, in per cent."""
    scores = rows[rows["part"] == part].set_index(["study", "captioner"])
    lines = {
        name: {captioner: cell(scores.loc[name, captioner]) for captioner in CAPTIONERS}
        for name in PROMPTS
    }
    return pd.DataFrame(lines).T.rename_axis("prompt")


def write(rows: pd.DataFrame) -> None:
    """Write the page."""
    trees = {name: compose.cell([*CELL, f"prompt={item}"]).tree for name, item in PROMPTS.items()}
    templates = {name: item["encoder"]["prompt"]["template"] for name, item in trees.items()}
    words = pd.DataFrame({"template": templates}).rename_axis("prompt")
    tables = {
        "Scores (per cent)": table(rows, "score"),
        "Probability of the true group, model captions (per cent)": table(rows, "model"),
        "The prompts": words.map(lambda item: f"`{item}`"),
    }
    write_page(PAGE, "Prompts", __file__, {title: markdown(item) for title, item in tables.items()})


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
