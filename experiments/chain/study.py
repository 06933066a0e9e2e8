"""From pictures to a verdict: a captioner, its captions of pictures it has not seen, their scores.

Usage: python -m experiments.chain --out DIR [--model FOLDER]
       python -m experiments.chain --rows OUTPUTS

Draws 1,000 scenes (seed 0), fits a SAT to 4,000 others (seed 1000) unless a captioner is given, has
it caption the 1,000, and writes a data set folder that `experiment=chain dataset.root=DIR` scores.
What is there already is not done again. With --rows the rows of the scores are committed: rows.csv
and RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.run import compose
from bias_pipeline.text.mentions import named_group
from experiments.study import cell, markdown, read_rows, write_page

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
# Metric and alignment to the parts that the page shows.
SHOWN_PARTS = {
    ("lic", "constant"): ("score", "model", "human"),
    ("lic", "matched"): ("score", "matched:people", "matched:reach"),
    ("dbac", "constant"): ("a_to_t", "t_to_a"),
    ("dbac", "matched"): ("a_to_t:shared", "t_to_a:shared", "a_to_t:matched:reach"),
    ("gender_error", ""): ("score", "human"),
    ("imagecaptioner2", "constant"): ("score", "model", "human", "leak:masked"),
    ("imagecaptioner2", "matched"): ("score", "matched:people", "matched:reach"),
}
CAPTIONER = "chain"  # its file's name in the data set
SIDE = "64"  # pixels
SHOWN = ("--n-images", "1000", "--seed", "0", "--side", SIDE)
LEARNT = (
    "dataset=scenes", "dataset.seed=1000", "dataset.n_images=4000", "encoder.dropout=0.1",
    f"encoder.side={SIDE}", "trainer.max_epochs=15",
)  # fmt: skip


class Naming(NamedTuple):
    """How well captions name the group of pictures whose group is labelled.

    Attributes:
        rightly: captions that name the group of the picture.
        naming: captions that name one group.
        men: captions that name men.
        images: pictures with a group.
    """

    rightly: int
    naming: int
    men: int
    images: int


def bias_pipeline(*words: str) -> None:
    """Run a command; one that fails has said why, and ends this process with its exit code."""
    print(f"python -m bias_pipeline {' '.join(words)}", flush=True)
    command = [sys.executable, "-m", "bias_pipeline", *words]
    if code := subprocess.run(command, check=False).returncode:  # noqa: S603 - our own
        raise SystemExit(code)


def run_once(path: Path, *words: str) -> None:
    """Run a command that writes a file or folder, unless it is there."""
    if path.exists():
        return
    try:
        bias_pipeline(*words)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def caption(folder: Path, model: Path, name: str, *masking: str) -> Path:
    """Caption the pictures of a data set folder; the file of captions."""
    written, file = folder / f"written_{name}", folder / "captioners" / f"{name}.json"
    if not file.exists():
        words = ("caption", str(folder / "images"), "--model", str(model), "--out", str(written))
        bias_pipeline(*words, *masking)
        bias_pipeline("caption", "--gather", str(written), "--to", str(file), "--no-strict")
    return file


def naming_of(folder: Path, file: Path) -> Naming:
    """How well a file of captions names the gender of a drawn data set's people."""
    captions = {str(row["image_id"]): row["caption"] for row in json.loads(file.read_text())}
    table = pd.read_csv(folder / "attributes.csv", dtype=str, keep_default_na=False)
    labels = table.set_index("id")["bb_gender"]
    gender = compose.cell(["attribute=gender"]).build("attribute")
    groups, written = gender.groups_of("coco")
    images = [image for image in captions if written.group_of(labels[image])]
    truth = np.array([groups.index(written.group_of(labels[image])) for image in images])
    texts = Captions.from_texts([captions[image] for image in images])
    named = named_group(texts, gender, groups)
    men = int((named == groups.index("male")).sum())
    return Naming(int((named == truth).sum()), int((named >= 0).sum()), men, len(images))


def build(folder: Path, model: Path | None) -> Naming:
    """Make the data set."""
    run_once(
        folder / "images", "data", "draw", "--out", str(folder), *SHOWN, "--captioner", "faithful"
    )
    if model is None:
        model = folder / "model"
        run_once(
            model, "fit", "sat", *LEARNT, "--out", str(model), f"paths.cache={folder / 'cache'}"
        )
    return naming_of(folder, caption(folder, model, CAPTIONER))


def record(outputs: Path) -> None:
    """Commit the headlines of finished runs, and the page that shows them."""
    rows = read_rows(outputs / "table.csv")
    rows["alignment"] = rows["alignment"].fillna("")
    lines = [
        {"metric": metric, "alignment": alignment or "–", "part": line["part"], "value": cell(line)}
        for (metric, alignment), parts in SHOWN_PARTS.items()
        for _, line in rows[(rows["metric"] == metric) & (rows["alignment"] == alignment)]
        .drop_duplicates("part").iterrows()
        if line["part"] in parts
    ]  # fmt: skip
    chosen = rows["part"].isin({part for parts in SHOWN_PARTS.values() for part in parts})
    rows[chosen].drop_duplicates(["run_id", "part"]).to_csv(ROWS, index=False, float_format="%.6g")
    page = markdown(pd.DataFrame(lines).set_index("metric"))
    write_page(HERE / "RESULTS.md", "Results", __file__, {"Per cent, 95 % intervals": page})


def main() -> None:
    """Make the data set and say what came out."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m experiments.chain", description=__doc__, formatter_class=layout
    )
    parser.add_argument("--out", type=Path, help="folder of the data set")
    parser.add_argument("--model", type=Path, help="any captioner of caption, instead of a new SAT")
    parser.add_argument("--rows", type=Path, metavar="OUTPUTS", help="commit the scores there")
    options = parser.parse_args()
    if options.rows:
        return record(options.rows)
    if not options.out:
        parser.error("name the folder of the data set with --out DIR")
    begin = time.monotonic()
    naming = build(options.out, options.model)
    print(
        f"{options.out}: {naming.naming} of {naming.images} captions name a group, "
        f"{100 * naming.rightly / max(naming.naming, 1):.1f} % of them rightly; "
        f"{time.monotonic() - begin:.0f} s"
    )
    print(f"python -m bias_pipeline experiment=chain dataset.root={options.out}")
    return None
