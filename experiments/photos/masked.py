"""The fitted captioner's captions of photos whose people are hidden step by step (DBAC, Table 4).

Usage: python -m experiments.photos.masked [DATA [OUTPUTS]]

With DATA the captioner of experiments.photos.study captions its photos again with the upper half of
people's boxes grey, their outlines, and their boxes. Metrics score these captions, and captions of
whole photos that are silent on gender where these are (masked_rows.csv, and masked_changes.csv of
differences from captions of whole photos). masked_looks.csv has where the captioner looked, and
masked_naming.csv counts the captions that name a gender. Without DATA the tables are made from
these files. What is in OUTPUTS already is not done again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.report.page import finished_runs
from bias_pipeline.results.identity import slug
from bias_pipeline.stats.compare import paired_difference
from experiments.chain.study import run_once
from experiments.photos.study import (
    COMMON,
    OF_CHANGED,
    OURS,
    caption,
    captions_of,
    divide,
    fit,
    groups_named,
    labels_of,
    link_photos,
    mute,
    naming_rows,
    scored_photos,
)
from experiments.study import cell, markdown, read_rows, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, CHANGES = HERE / "masked_rows.csv", HERE / "masked_changes.csv"
LOOKS, NAMING, PAGE = HERE / "masked_looks.csv", HERE / "masked_naming.csv", HERE / "MASKED.md"
WHOLE = "whole photo"
# Step to what hides people, and the file of their places.
STEPS = {
    "upper half": ("person_part", "boxes"),
    "outline": ("person_segment", "outlines"),
    "box": ("person_box", "boxes"),
}
SILENT = "whole photo, silent as "
COLUMNS = (WHOLE, *STEPS, *(SILENT + step for step in STEPS))
# Metric, part and name of each line.
SCORES = (
    ("gender_error", "score", "Wrong gender, of all"),
    ("gender_error", "named", "Wrong gender, of captions that name one"),
    ("group_accuracy", "group:female", "Women named women"),
    ("group_accuracy", "incorrect:female", "Women named men"),
    ("group_accuracy", "incorrect:male", "Men named women"),
    ("lic", "score", "LIC"),
    ("dpa", "t_to_a", "DPA T→A"),
    ("ba_directional", "t_to_a", "BA→ T→A"),
    ("dbac", "t_to_a", "DBAC T→A"),
    ("dbac", "t_to_a:none", "its attacker alone"),
    ("dbac", "t_to_a:priors", "its prior alone"),
    ("labels", "t_to_a", "DBAC T→A, prior=labels"),
    ("dbac", "a_to_t", "DBAC A→T"),
)
INSIDE = {"attribution_score": "map inside", "uniform_share": "even map inside"}
WORDS = ("man", "woman")
LOOKED = 80  # photos whose maps are made, those with the smallest numbers


def places(photos: Path, out: Path) -> dict[str, Path]:
    """Files of people's boxes, and of their outlines: annotators', else predicted in the boxes."""
    boxes = json.loads((photos / "person_boxes.json").read_text())
    for one in boxes["annotations"]:
        left, top, wide, high = one["bbox"]
        right, foot = left + wide, top + high
        one["segmentation"] = [[left, top, right, top, right, foot, left, foot]]
    outlines = json.loads((photos / "instances_predicted_boxes.json").read_text())
    drawn = json.loads((photos / "instances.json").read_text())
    by_people = {one["id"] for one in drawn["images"]}
    for key, image in (("images", "id"), ("annotations", "image_id")):
        predicted = [one for one in outlines[key] if one[image] not in by_people]
        outlines[key] = drawn[key] + predicted
    for number, one in enumerate(outlines["annotations"]):
        one["id"] = number
    files = {}
    for name, contents in (("boxes", boxes), ("outlines", outlines)):
        files[name] = out / f"{name}.json"
        files[name].write_text(json.dumps(contents))
    return files


def silent_as(whole: Path, step: Path, path: Path) -> Path:
    """Captions of whole photos, without a gender where a step's captions name none."""
    captions = captions_of(step)
    named = zip(captions, groups_named(captions.values()), strict=True)
    return mute(captions_of(whole), [image for image, group in named if not group], path)


def looks(data: tuple[str, ...], out: Path, step: str, masking: str, regions: Path) -> pd.DataFrame:
    """The share of the maps of *man* and *woman* inside people, beside a map that is even."""
    maps, few = out / f"maps_{slug(step)}_{regions.stem}", out / "looked.csv"
    few.write_text("".join((out / "test.csv").read_text().splitlines(keepends=True)[: 1 + LOOKED]))
    run_once(
        maps, "explain", "gradcam", *data, f"dataset.regions={regions}",
        f"dataset.attributes={few}",
        f"captioner={out / 'photos_sat.json'}", f"image_masking={masking}",
        "--words", ",".join(WORDS), "--model", str(out / "photos_sat"), "--out", str(maps),
    )  # fmt: skip
    table = pd.read_parquet(maps / "attribution.parquet").dropna(subset="attribution_score")
    chosen = {word: table[table["word"] == word] for word in WORDS}
    chosen["no gender"] = table[table["word"].isna()]
    lines = []
    for word, shares in chosen.items():
        inside = 1 - shares[list(INSIDE)].rename(columns=INSIDE)
        inside["difference"] = inside["map inside"] - inside["even map inside"]
        for part, values in inside.items():
            half = 1.96 * values.std() / np.sqrt(len(values))
            ends = {"ci_low": values.mean() - half, "ci_high": values.mean() + half}
            kind = {"people": regions.stem, "captioner": step, "part": f"{word}: {part}"}
            measured = {"value": values.mean(), **ends, "unit": "fraction"}
            lines.append({**kind, **measured, "n_images": len(values)})
    return pd.DataFrame(lines)


def run(data: Path, out: Path = Path("outputs/photos")) -> pd.DataFrame:
    """Rows of all sweeps; also writes the other tables."""
    photos = data / "photos"
    out.mkdir(parents=True, exist_ok=True)
    divide(photos, out)
    model = fit(photos, out)
    where = places(photos, out)
    files = {WHOLE: caption(out / "images", model, OURS)}
    scored = link_photos(photos, labels_of(out / "test.csv"), out / "scored")
    for step, (masking, kind) in STEPS.items():
        hidden = ("--image-masking", masking, "--regions", str(where[kind]))
        files[step] = caption(scored, model, f"masked_{slug(step)}", *hidden)
    for step in STEPS:
        name = f"silent_{slug(step)}.json"
        files[SILENT + step] = silent_as(files[WHOLE], files[step], out / name)
    naming_rows(files, labels_of(out / "test.csv")).to_csv(NAMING, index=False, float_format="%.4f")
    shown = scored_photos(photos, out)
    captioners = "captioner=" + ",".join(map(str, files.values()))
    words = (*shown, *COMMON[1:], captioners)
    frames = [
        sweep("scores", out, *words, f"metric={OF_CHANGED},group_accuracy"),
        sweep("labels", out, *words, "metric=dbac", "metric.prior=labels"),
    ]
    rows = named_by(pd.concat(frames, ignore_index=True), files)
    rows["study"] = rows["study"].where(rows["study"] != "scores", rows["metric"])
    maps = [
        looks(shown, out, WHOLE, "none", where["boxes"]),
        looks(shown, out, WHOLE, "none", where["outlines"]),
        looks(shown, out, "box", "person_box", where["boxes"]),
    ]
    pd.concat(maps).to_csv(LOOKS, index=False, float_format="%.6g")
    pairs = {name: (name, WHOLE) for name in COLUMNS[1:]}
    changes = differences(rows, out, SCORES, pairs)
    changes.to_csv(CHANGES, index=False, float_format="%.6g")
    return rows[rows["part"].isin({part for _, part, _ in SCORES} | {"human"})]


def named_by(rows: pd.DataFrame, files: Mapping[str, Path]) -> pd.DataFrame:
    """Rows whose captioners have the names of their files."""
    names = {slug(file.stem): name for name, file in files.items()}
    return rows.assign(captioner=rows["captioner"].map(lambda path: names[slug(Path(path).stem)]))


def differences(
    rows: pd.DataFrame,
    out: Path,
    scores: Iterable[tuple[str, str, str]],
    pairs: Mapping[str, tuple[str, str]],
) -> pd.DataFrame:
    """Differences of two captioners' scores, the first minus the second, over paired images."""
    draws = finished_runs(out)[1]
    runs = rows.drop_duplicates(["study", "captioner"]).set_index(["study", "captioner"])["run_id"]
    lines = []
    for study, part, _ in scores:
        unit = rows[(rows["study"] == study) & (rows["part"] == part)]["unit"].iloc[0]
        for pair, both in pairs.items():
            one, other = (draws[runs[study, name]].get(part) for name in both)
            if one is None or other is None:
                continue
            change = paired_difference(one, other)
            kind = {"study": study, "captioner": pair, "part": part, "unit": unit}
            ends = {"ci_low": change.ci_low, "ci_high": change.ci_high}
            lines.append({**kind, "value": change.value, **ends, "p_value": change.p_value})
    return pd.DataFrame(lines)


def score_table(
    rows: pd.DataFrame,
    scores: Iterable[tuple[str, str, str]],
    columns: Sequence[str],
) -> pd.DataFrame:
    """A line for each score that has rows, a column for each captioner or pair."""
    lines = {}
    for study, part, title in scores:
        chosen = rows[(rows["study"] == study) & (rows["part"] == part)]
        by_name = chosen.drop_duplicates("captioner").set_index("captioner")
        if len(by_name):
            lines[title] = {
                name: cell(by_name.loc[name]) if name in by_name.index else "–" for name in columns
            }
    return pd.DataFrame(lines).T.rename_axis("score")


def looks_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each step, people's places and word."""
    lines: dict[tuple[str, ...], dict[str, object]] = {}
    for _, line in rows.iterrows():
        word, part = line["part"].split(": ")
        key = (line["captioner"], line["people"], word)
        lines.setdefault(key, {"photos": int(line["n_images"])})[part] = cell(line)
    named = {", ".join(key): values for key, values in lines.items()}
    return pd.DataFrame(named).T.rename_axis("photo, people by, word")


def write(rows: pd.DataFrame) -> None:
    """Write the tables."""
    naming = pd.read_csv(NAMING).set_index("captioner")
    shares = ["none", "right", "wrong", "men"]
    naming[shares] *= 100
    tables = {
        "Scores (per cent)": markdown(score_table(rows, SCORES, COLUMNS)),
        "Minus the captions of whole photos (points)": markdown(
            score_table(read_rows(CHANGES), SCORES, COLUMNS[1:])
        ),
        "What captions name (per cent)": markdown(naming[["images", *shares]], 1),
        "Where the captioner looked (per cent of the map)": markdown(looks_table(read_rows(LOOKS))),
    }
    write_page(PAGE, "People hidden step by step", __file__, tables)


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
