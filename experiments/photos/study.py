"""A captioner fitted to real photos, beside published captioners and with people masked.

Usage: python -m experiments.photos.study [DATA [OUTPUTS]]

With DATA (the folder of photos/, coco/ and captioners/) a SAT is fitted to 1,800 photos on features
of EfficientNet-Lite0 (extra offline-vision) and captions the 700 others, as they are and with
people masked; every metric scores its captions (rows.csv), `explain gradcam` shows where it looked
and the captions are counted (naming.csv). Without DATA the tables are made from these files. What
is in OUTPUTS already is not done again.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.run import compose
from bias_pipeline.text.mentions import named_group
from experiments.chain.study import bias_pipeline, once
from experiments.study import cell, markdown, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, NAMING, PAGE = HERE / "rows.csv", HERE / "naming.csv", HERE / "RESULTS.md"
N_TEST = 700
EACH = 3  # captions of a photo to learn from
OURS = "photos_sat"
FIT = (
    "encoder.backbone=efficientnet_lite0", "encoder.embedding_dim=128", "encoder.hidden_dim=192",
    "encoder.dropout=0.3", "attacker.lr=0.003", "trainer.max_epochs=8",
    "trainer.precision=32-true",
)  # fmt: skip
PUBLISHED = ("nic", "sat", "fc", "att2in", "transformer", "oscar", "nicplus")
# Step of masking, to its file of regions and what is painted over.
STEPS = {
    "original": ("", "none"),
    "half box": ("half_boxes.json", "person_box"),
    "box": ("person_boxes.json", "person_box"),
    "half outline": ("instances_predicted_boxes.json", "person_part"),
    "outline": ("instances_predicted_boxes.json", "person_segment"),
}
LOOKED = ("original", "outline")  # steps whose maps are compared with people's outlines
MUTED = "muted as "  # captions of whole photos that name no group where those of a step name none
# Metric, its part, and its name in a table.
SCORES = (
    ("quality", "model", "CIDEr-D"),
    ("gender_error", "score", "Wrong gender"),
    ("gender_ratio", "score", "Men to women"),
    ("lic", "score", "LIC"),
    ("ba_directional", "a_to_t", "BA→ A→T"),
    ("ba_directional", "t_to_a", "BA→ T→A"),
    ("dbac", "a_to_t", "DBAC A→T"),
    ("dbac", "t_to_a", "DBAC T→A"),
    ("dpa", "a_to_t", "DPA A→T"),
    ("dpa", "t_to_a", "DPA T→A"),
    ("prior", "t_to_a", "DBAC T→A, prior=labels"),
    ("imagecaptioner2", "score", "ImageCaptioner2"),
)
SHARES = ("none", "right", "wrong", "men")
COMMON = ("dataset=coco", "seeds=3", "logger=csv")
OF_STEPS = ("gender_error", "lic", "ba_directional", "dbac", "dpa")


def divide(photos: Path, out: Path) -> None:
    """Captions to learn from, and photos, captions and labels to score by."""
    whole = json.loads((photos / "captions.json").read_text())
    ids = sorted(image["id"] for image in whole["images"])
    test = set(random.Random(0).sample(ids, N_TEST))  # noqa: S311 - no secret
    for name, chosen in (("train", set(ids) - test), ("test", test)):
        lines: dict[int, list[dict[str, object]]] = {image: [] for image in chosen}
        for line in whole["annotations"]:
            if line["image_id"] in lines:
                lines[line["image_id"]].append(line)
        most = EACH if name == "train" else None
        annotations = [line for image in sorted(lines) for line in lines[image][:most]]
        images = [image for image in whole["images"] if image["id"] in chosen]
        contents = {"images": images, "annotations": annotations}
        (out / f"{name}.json").write_text(json.dumps(contents))
        with (photos / "attributes.csv").open() as read, (out / f"{name}.csv").open("w") as file:
            rows = [row for row in csv.DictReader(read) if int(row["id"]) in chosen]
            column = "gender" if name == "train" else "bb_gender"
            table = csv.writer(file)
            table.writerow(["id", "gender"])
            scored = [row for row in rows if name == "train" or row[column] in ("Male", "Female")]
            table.writerows([row["id"], row[column]] for row in scored)
    _link(photos, out / "images", test)
    _link(photos, out / "labelled", labels_of(out / "test.csv"))
    _halve(photos / "person_boxes.json", out / "half_boxes.json")


def _link(photos: Path, folder: Path, images: Iterable[int]) -> None:
    """A folder of some photos."""
    folder.mkdir(exist_ok=True)
    for image in images:
        link = folder / f"{image:012d}.jpg"
        link.unlink(missing_ok=True)
        link.symlink_to((photos / "images" / link.name).resolve())


def _halve(boxes: Path, path: Path) -> None:
    """The upper halves of boxes of people."""
    contents = json.loads(boxes.read_text())
    for line in contents["annotations"]:
        left, top, width, height = line["bbox"]
        line["bbox"] = [left, top, width, height / 2]
    path.write_text(json.dumps(contents))


def regions(step: str, photos: Path, out: Path) -> Path:
    """The file of a step's regions."""
    name = STEPS[step][0]
    return (out if name.startswith("half") else photos) / name


def caption(step: str, photos: Path, out: Path) -> Path:
    """The file of the fitted captioner's captions at one step."""
    name = OURS if step == "original" else step.replace(" ", "_")
    file = out / f"{name}.json"
    if not file.exists():
        written = out / f"written_{name}"
        masked = () if step == "original" else (
            "--image-masking", STEPS[step][1], "--regions", str(regions(step, photos, out)),
        )  # fmt: skip
        model = ("--model", str(out / OURS), "--beams", "3", "--out", str(written))
        shown = out / ("images" if step == "original" else "labelled")
        bias_pipeline("caption", str(shown), *model, *masked)
        bias_pipeline("caption", "--gather", str(written), "--to", str(file), "--no-strict")
    return file


def captions_of(file: Path) -> dict[int, str]:
    return {int(line["image_id"]): line["caption"] for line in json.loads(file.read_text())}


def labels_of(path: Path) -> dict[int, str]:
    with path.open() as file:
        return {int(row["id"]): row["gender"].lower() for row in csv.DictReader(file)}


def groups_named(texts: Iterable[str]) -> list[str]:
    """The gender that each caption names; empty for none or both."""
    gender = compose.cell(["attribute=gender"]).build("attribute")
    groups, _ = gender.groups_of("coco")
    named = named_group(Captions.from_texts(list(texts)), gender, groups)
    return [groups[number] if number >= 0 else "" for number in named]


def mute(whole: Path, step: Path) -> Path:
    """Captions of whole photos without a gender wherever those of a step name none."""
    path = whole.with_name(f"muted_{step.name}")
    captions, others = captions_of(whole), captions_of(step)
    neutral = compose.cell(["attribute=gender"]).build("attribute")
    words = {
        word for naming in neutral.namings() for _, of_group in naming.words for word in of_group
    }
    silent = dict(zip(others, groups_named(others.values()), strict=True))
    lines = [
        {"image_id": image, "caption": _neutral(text, words) if not silent[image] else text}
        for image, text in captions.items()
        if image in others
    ]
    path.write_text(json.dumps(lines))
    return path


def _neutral(text: str, words: Iterable[str]) -> str:
    known = set(words)
    return " ".join("person" if word in known else word for word in text.split())


def naming_rows(files: Mapping[str, Path], labels: Mapping[int, str]) -> pd.DataFrame:
    """How many captions name which gender, by captioner or step."""
    rows = []
    for name, file in files.items():
        captions = {image: text for image, text in captions_of(file).items() if image in labels}
        named = groups_named(captions.values())
        truth = [labels[image] for image in captions]
        pairs = list(zip(named, truth, strict=True))
        rows.append(
            {
                "captioner": name,
                "images": len(pairs),
                "none": sum(not one for one, _ in pairs) / len(pairs),
                "right": sum(one == other for one, other in pairs) / len(pairs),
                "wrong": sum(bool(one) and one != other for one, other in pairs) / len(pairs),
                "men": sum(one == "male" for one, _ in pairs) / max(sum(map(bool, named)), 1),
            }
        )
    return pd.DataFrame(rows)


def look(step: str, photos: Path, out: Path) -> dict[str, float]:
    """Where the captioner looked: the share of its maps outside people."""
    folder = out / f"maps_{step.replace(' ', '_')}"
    masked = () if step == "original" else (f"image_masking={STEPS[step][1]}",)
    outlines = photos / "instances_predicted_boxes.json"
    file = outlines if step == "original" else regions(step, photos, out)
    if step not in LOOKED:
        return {}
    once(
        folder, "explain", "gradcam", "--model", str(out / OURS), *scored(photos, out), *masked,
        f"dataset.regions={file}", f"captioner={out / OURS}.json", "--pictures", "0",
        "--out", str(folder),
    )  # fmt: skip
    table = pd.read_parquet(folder / "attribution.parquet")
    known = table.dropna(subset=["attribution_score"])
    half = 1.96 * known["attribution_score"].std() / np.sqrt(len(known))
    return {
        "outside": known["attribution_score"].mean(),
        "half": half,
        "uniform": known["uniform_share"].mean(),
    }


def scored(photos: Path, out: Path) -> tuple[str, ...]:
    """The photos that are scored, with labels and annotators' captions."""
    return (
        *COMMON[:1],
        f"dataset.attributes={out / 'test.csv'}",
        f"dataset.captions={out / 'test.json'}",
        f"dataset.instances={photos.parent / 'coco' / 'annotations' / 'instances_val2014.json'}",
        f"dataset.images={photos / 'images'}",
        "dataset.strict=false",
        f"paths.cache={out / 'cache'}",
    )


def run(data: Path, out: Path = Path("outputs/photos")) -> pd.DataFrame:
    """Rows of all sweeps; also writes naming.csv."""
    photos = data / "photos"
    out.mkdir(parents=True, exist_ok=True)
    divide(photos, out)
    once(
        out / OURS, "fit", "sat", "dataset=coco", "captioner=none",
        f"dataset.captions={out / 'train.json'}",
        f"dataset.attributes={out / 'train.csv'}", f"dataset.images={photos / 'images'}", *FIT,
        f"paths.cache={out / 'cache'}", "--out", str(out / OURS),
    )  # fmt: skip
    words = (*scored(photos, out), *COMMON[1:])
    whole = caption("original", photos, out)
    published = {name: data / "captioners" / f"{name}.json" for name in PUBLISHED}
    metrics = "metric=" + ",".join(dict.fromkeys(name for name, _, _ in SCORES[:-2]))
    frames = [sweep("scores", out, *words, metrics, _captioners([whole, *published.values()]))]
    steps = {step: caption(step, photos, out) for step in STEPS}
    muted = {MUTED + step: mute(whole, steps[step]) for step in list(steps)[1:]}
    masked = _captioners([*steps.values(), *muted.values()])
    frames += [
        sweep("steps", out, *words, f"metric={','.join(OF_STEPS)}", masked),
        sweep("prior", out, *words, "metric=dbac", "metric.prior=labels", masked),
        sweep(
            "imagecaptioner2", out, *words, "metric=imagecaptioner2", "encoder=sat",
            "encoder.backbone=efficientnet_lite0", "alignment=none", "metric.leaks=[]",
            "image_masking=person_segment", "seeds=1",
            f"dataset.regions={photos / 'instances_predicted_boxes.json'}",
            _captioners(steps.values()),
        ),
    ]  # fmt: skip
    files = {**steps, **muted, **published}
    naming = naming_rows(files, labels_of(out / "test.csv")).set_index("captioner")
    looks = pd.DataFrame({step: look(step, photos, out) for step in steps}).T
    naming.join(looks).reset_index().to_csv(NAMING, index=False, float_format="%.4f")
    named = {file.stem: name for name, file in files.items()}
    rows = pd.concat(frames, ignore_index=True)
    rows["captioner"] = rows["captioner"].map(lambda path: named[Path(path).stem])
    by_metric = rows["study"].isin(["scores", "steps"])
    rows.loc[by_metric, "study"] = rows.loc[by_metric, "metric"]
    return rows[rows["part"].isin({part for _, part, _ in SCORES} | {"human"})]


def _captioners(files: Iterable[Path]) -> str:
    return "captioner=" + ",".join(map(str, files))


def table(rows: pd.DataFrame, captioners: Iterable[str]) -> pd.DataFrame:
    """A line for each captioner, a column for each score."""
    columns = {}
    for study, part, title in SCORES:
        chosen = rows[(rows["study"] == study) & (rows["part"] == part)]
        by_name = chosen.drop_duplicates("captioner").set_index("captioner")
        columns[title] = {
            name: cell(by_name.loc[name]) if name in by_name.index else "–" for name in captioners
        }
    return pd.DataFrame(columns).rename_axis("captioner")


def write(rows: pd.DataFrame) -> None:
    """Write the tables."""
    naming = pd.read_csv(NAMING)
    counted = naming.set_index("captioner")[["images", "none", "right", "wrong", "men"]]
    counted = counted.assign(
        **{key: 100 * counted[key] for key in ("none", "right", "wrong", "men")}
    )
    looked = naming.dropna(subset=["outside"]).set_index("captioner")
    looked = looked[["outside", "half", "uniform"]] * 100
    muted = [name for name in naming["captioner"] if name.startswith(MUTED)]
    tables = {
        "Scores (per cent, but for CIDEr-D and men to women)": markdown(
            table(rows, ("original", *PUBLISHED))
        ),
        "People masked": markdown(table(rows, (*STEPS, *muted)).T.rename_axis("score")),
        "What captions name (per cent)": markdown(counted, 1),
        "Share of the map outside people (per cent)": markdown(looked, 1),
    }
    write_page(PAGE, "Results", __file__, tables)


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
