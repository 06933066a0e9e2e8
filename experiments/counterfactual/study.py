"""Sets of pictures: false alarms of every test on twins, and a real captioner's captions of PAIRS.

Usage: python -m experiments.counterfactual.study alarms [SETS ...]
       python -m experiments.counterfactual.study pairs [DATA [OUTPUTS]]

``alarms`` draws twins of whom all captions are written alike, and counts how often each test has
a p of at most 0.05 (alarms.csv). ``pairs`` has the SAT of experiments/photos caption the pictures
of PAIRS (DATA has photos/ and pairs/), with three beams and in three samples, and compares
genders and races (rows.csv). What is in OUTPUTS already is not done again. Without DATA only
RESULTS.md is made, from the rows.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.pairs.comparison import GroupsCompared
from experiments.chain.study import bias_pipeline, run_once
from experiments.counterfactual.twin_worlds import compare, twin_corpus
from experiments.photos.study import FIT, OURS, divide
from experiments.study import cell, markdown, read_rows, sweep, write_results

HERE = Path(__file__).resolve().parent
ALARMS, ROWS = HERE / "alarms.csv", HERE / "rows.csv"
SIZES = (20, 50, 200)  # sets, unless others are named
NOISES = (0.0, 0.2)  # the chance that a detail of a picture is drawn anew, whoever is in it
DRAWS, FIRST_SEED = 400, 20_000
ALPHA = 0.05
LISTED = 1.0  # every caption says how the person looks
DECODINGS: Mapping[str, Sequence[str]] = {
    "beams": ("--beams", "3"),
    "samples": ("--n", "3", "--temperature", "1"),
}


def p_values(one: GroupsCompared) -> dict[str, float]:
    """P of each test, NaN where there is none; classes after Holm."""
    tests = {name: one.distance_tests[name][1] for name in ("beyond_pictures", "shift")}
    raw = {gap.name: gap.p_value for gap in one.gaps}
    classes = [gap.adjusted_p for gap in one.deciding if not np.isnan(gap.adjusted_p)]
    words = [word.p_value for word in one.words]
    return tests | {
        "words": min(words, default=float("nan")),
        "any class": min(classes, default=float("nan")),
        "attractiveness": raw["attractiveness"],
    }


def count_alarms(sizes: Sequence[int]) -> None:
    """Write a row for each test, size and noise: how many of the draws reject."""
    with ALARMS.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["sets", "noise", "test", "draws", "rejected", "minutes"])
        for n_sets in sizes:
            for noise in NOISES:
                started = time.process_time()
                rejected: dict[str, int] = {}
                for draw in range(DRAWS):
                    corpus = twin_corpus(n_sets, FIRST_SEED + draw, noise, adjectives=LISTED)
                    for test, p_value in p_values(compare(corpus)).items():
                        rejected[test] = rejected.get(test, 0) + (p_value <= ALPHA)
                minutes = f"{(time.process_time() - started) / 60:.1f}"
                for test, number in rejected.items():
                    table.writerow([n_sets, noise, test, DRAWS, number, minutes])
                file.flush()


def flat_pictures(pairs: Path, out: Path) -> Path:
    """A folder with links to all pictures; slashes of their ids become ``--``."""
    folder = out / "pictures"
    folder.mkdir(exist_ok=True)
    for picture in sorted((pairs / "data").glob("*/*/*.png")):
        link = folder / "--".join(picture.parts[-3:])
        link.unlink(missing_ok=True)
        link.symlink_to(picture.resolve())
    return folder


def caption_pairs(pictures: Path, decoding: str, out: Path) -> Path:
    """The file of the fitted captioner's captions, with ids of PAIRS."""
    file = out / f"{decoding}.json"
    if not file.exists():
        written = out / f"written_{decoding}"
        model = ("--model", str(out / OURS), *DECODINGS[decoding], "--out", str(written))
        bias_pipeline("caption", str(pictures), *model)
        bias_pipeline("caption", "--gather", str(written), "--to", str(file))
        rows = json.loads(file.read_text())
        named = [{**row, "image_id": str(row["image_id"]).replace("--", "/")} for row in rows]
        file.write_text(json.dumps(named))
    return file


def score_pairs(data: Path, out: Path) -> None:
    """Fit the captioner, caption PAIRS, and write the rows of both attributes."""
    photos = data / "photos"
    out.mkdir(parents=True, exist_ok=True)
    divide(photos, out)
    run_once(
        out / OURS, "fit", "sat", "dataset=coco", "captioner=none",
        f"dataset.captions={out / 'train.json'}",
        f"dataset.attributes={out / 'train.csv'}", f"dataset.images={photos / 'images'}", *FIT,
        f"paths.cache={out / 'cache'}", "--out", str(out / OURS),
    )  # fmt: skip
    pictures = flat_pictures(data / "pairs", out)
    files = [str(caption_pairs(pictures, decoding, out)) for decoding in DECODINGS]
    rows = sweep(
        "pairs", out, "metric=counterfactual", "dataset=pairs", f"dataset.root={data / 'pairs'}",
        "attribute=gender,race", f"captioner={','.join(files)}", "logger=csv",
    )  # fmt: skip
    rows["captioner"] = rows["captioner"].map(lambda path: Path(path).stem)
    columns = ["attribute", "captioner", "part", "value", "ci_low", "ci_high", "p_value"]
    chosen = rows[[*columns, "n_images", "metric_version"]]
    chosen.to_csv(ROWS, index=False, float_format="%.5g")


def class_table(rows: pd.DataFrame) -> str:
    """For each class of captions that occurs, the groups' shares and their difference."""
    parts = rows.set_index("part").assign(unit="fraction")
    lines: dict[str, dict[str, object]] = {}
    for part, difference in parts[parts.index.str.fullmatch("class:[^:]+")].iterrows():
        if part == "class:words":  # a length, no share
            continue
        groups = parts.loc[parts.index.str.startswith(f"{part}:"), "value"]
        if groups.any():
            shares = {
                str(name).rpartition(":")[2]: f"{100 * value:.1f}" for name, value in groups.items()
            }
            lines[str(part).removeprefix("class:")] = {
                **shares, "difference": cell(difference), "p after Holm": difference["p_value"],
            }  # fmt: skip
    return markdown(pd.DataFrame.from_dict(lines, orient="index").rename_axis("class"), 4)


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if command == "alarms":
        count_alarms([*map(int, words)] or SIZES)
    else:
        if words:
            place = Path(words[1] if len(words) > 1 else "outputs/counterfactual")
            score_pairs(Path(words[0]), place)
        compared = read_rows(ROWS).groupby(["attribute", "captioner"], sort=False)
        tables = {
            f"Per cent of captions in each class: {attribute}, {way}": class_table(part)
            for (attribute, way), part in compared
        }
        write_results(HERE, tables)
