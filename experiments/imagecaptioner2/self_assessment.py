"""Captioners that judge themselves: SAT fitted to planted captions.

Usage: python -m experiments.imagecaptioner2.self_assessment [OUTPUTS]

With OUTPUTS everything is computed and self_rows.csv is written: captioners are fitted to a world
of scenes, describe another, and are judged there by themselves, by each other and by a newly
trained SAT. Without it, the tables are made from those.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

from experiments.study import HOLD_OUT, cell, markdown, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "self_rows.csv", HERE / "SELF.md"
# The captioners they learn from, by planted bias.
PLANTED = ("dampener", "faithful", "amplifier")
# They learn from 4,000 scenes and are judged on 2,000 others.
LEARNT = (
    "dataset=scenes", "dataset.seed=1000", "dataset.n_images=4000", "encoder.dropout=0.1",
    "trainer.max_epochs=50",
)  # fmt: skip
JUDGED = ("--n-images", "2000")
CAPTIONS = ("dataset=coco", "seeds=3", "logger=csv")
CELL = ("metric=imagecaptioner2", "metric.leaks=[]", *CAPTIONS)
# Words that captions of scenes contain, so that a captioner knows the prompt.
ANSWERS = ("+encoder.prompt.answers.male=man", "+encoder.prompt.answers.female=woman")
PROMPTS = {
    "suffix": "{caption} a {answer}",
    "cloze": "a {answer} {caption}",
}
FRESH = "SAT, trained afresh"
PARTS = {"score": "difference", "model": "its captions", "human": "human captions"}
# Numbers of the captions only: which groups they name, and LIC with n-grams.
TEXT = {
    "group_accuracy": {"group:male": "men named rightly", "group:female": "women named rightly"},
    "lic": {"score": "LIC"},
}


def run(outputs: Path) -> pd.DataFrame:
    """Rows of every captioner under every judge."""
    outputs = outputs.absolute()
    outputs.mkdir(parents=True, exist_ok=True)
    drawn, models = outputs / "drawn", {name: outputs / f"sat_{name}" for name in PLANTED}
    _run_once(drawn, "data", "draw", "--out", str(drawn), *JUDGED)
    for name, model in models.items():
        words = ("fit", "sat", *LEARNT, f"captioner={name}", "--captions", "model")
        _run_once(model, *words, "--out", str(model))
        written = outputs / f"written_{name}"
        _run_once(
            written, "caption", str(drawn / "images"), "--model", str(model), "--out", str(written)
        )
        captions = outputs / f"fitted_to_{name}.json"
        _run_once(captions, "caption", "--gather", str(written), "--to", str(captions))
    captioners = ",".join(str(outputs / f"fitted_to_{name}.json") for name in PLANTED)
    given = (*_data(drawn), f"captioner={captioners}")
    frames = [sweep(name, outputs, f"metric={name}", *HOLD_OUT, *CAPTIONS, *given) for name in TEXT]
    common = (*CELL, *given, f"paths.cache={outputs / 'cache'}")
    frames.append(sweep(FRESH, outputs, "encoder=sat", *common))
    for judge, model in models.items():
        for prompt, template in PROMPTS.items():
            judge_words = (
                "encoder=hf",
                f"encoder.model={model}",
                "encoder.batch_size=128",
                *ANSWERS,
            )
            template = f'encoder.prompt.template="{template}"'
            frames.append(sweep(f"{judge}, {prompt}", outputs, *judge_words, template, *common))
    rows = pd.concat(frames, ignore_index=True)
    parts_shown = {*PARTS, *(part for parts in TEXT.values() for part in parts)}
    return rows[rows["part"].isin(parts_shown)]


def _run_once(path: Path, *words: str) -> None:
    """Run a command, unless its output exists."""
    if path.exists():
        return
    try:
        command = [sys.executable, "-m", "bias_pipeline", *words]
        subprocess.run(command, check=True)  # noqa: S603 - our own
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _data(drawn: Path) -> list[str]:
    """The settings that read the drawn scenes."""
    notes = drawn / "annotations"
    return [
        f"dataset.attributes={drawn / 'attributes.csv'}",
        f"dataset.captions={notes / 'captions.json'}",
        f"dataset.instances={notes / 'instances.json'}",
        f"dataset.images={drawn / 'images'}",
    ]


def table(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """One line per judge, one column per captioner, in per cent."""
    scores = rows[rows["part"] == part].set_index(["study", "captioner"])
    judges = [judge for judge in dict.fromkeys(rows["study"]) if judge not in TEXT]
    lines = {
        judge: {name: cell(scores.loc[judge, f"fitted_to_{name}"]) for name in PLANTED}
        for judge in judges
    }
    return pd.DataFrame(lines).T.rename_axis("judge")


def of_text(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per number, one column per captioner, in per cent."""
    scores = rows.set_index(["study", "part", "captioner"])
    lines = {
        title: {name: cell(scores.loc[metric, part, f"fitted_to_{name}"]) for name in PLANTED}
        for metric, parts in TEXT.items()
        for part, title in parts.items()
    }
    return pd.DataFrame(lines).T.rename_axis("captions")


def write(rows: pd.DataFrame) -> None:
    """Write the page."""
    tables = {"What captions say (per cent)": markdown(of_text(rows))}
    for part, title in PARTS.items():
        tables[f"{title[0].upper()}{title[1:]} (per cent)"] = markdown(table(rows, part))
    write_page(PAGE, "Self-assessment", __file__, tables)


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
