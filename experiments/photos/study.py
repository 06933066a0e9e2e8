"""A captioner fitted to real photos, beside published captioners and with genders taken out.

Usage: python -m experiments.photos.study [DATA [OUTPUTS]]

With DATA (the folder of photos/, coco/ and captioners/) a SAT is fitted to 1,800 photos on features
of EfficientNet-Lite0 (extra offline-vision) and captions the 700 others; so is a GRIT, which
captions those that are scored. Metrics score their captions, the SAT's without a gender in a part
of the images, and published ones (rows.csv); the captions that name a gender are counted
(naming.csv). Without DATA the tables are made from these
files. What is in OUTPUTS already is not done again.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.results.identity import slug
from bias_pipeline.run import compose
from bias_pipeline.text.mentions import named_group
from experiments.chain.study import bias_pipeline, run_once
from experiments.study import cell, markdown, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, NAMING, PAGE = HERE / "rows.csv", HERE / "naming.csv", HERE / "RESULTS.md"
N_TEST = 700
EACH = 3  # captions of a photo to learn from
OURS, GRIT = "photos_sat", "photos_grit"
FIT = (
    "encoder.backbone=efficientnet_lite0", "encoder.embedding_dim=128", "encoder.hidden_dim=192",
    "encoder.dropout=0.3", "attacker.lr=0.003", "trainer.max_epochs=8",
    "trainer.precision=32-true",
)  # fmt: skip
FIT_GRIT = (
    "encoder.backbone=efficientnet_lite0",
    "trainer.max_epochs=15",
    "trainer.precision=32-true",
)
PUBLISHED = ("nic", "sat", "fc", "att2in", "transformer", "oscar", "nicplus")
# The captioner's captions as they are, and silent on gender in a share of all images, at random.
WHOLE = "as written"
BY_GRIT = "a GRIT fitted here"
MUTED = {"muted 51 %": 0.51, "muted 75 %": 0.75}
# Metric, its part, and its name in a table.
SCORES = (
    ("quality", "model", "CIDEr-D"),
    ("gender_error", "score", "Wrong gender"),
    ("gender_ratio", "model", "Men to women"),
    ("lic", "score", "LIC"),
    ("ba_directional", "a_to_t", "BA→ A→T"),
    ("ba_directional", "t_to_a", "BA→ T→A"),
    ("dbac", "a_to_t", "DBAC A→T"),
    ("dbac", "t_to_a", "DBAC T→A"),
    ("dpa", "a_to_t", "DPA A→T"),
    ("dpa", "t_to_a", "DPA T→A"),
    ("prior", "t_to_a", "DBAC T→A, prior=labels"),
)
SHARES = ("none", "right", "wrong", "men")
COMMON = ("dataset=coco", "seeds=3", "logger=csv")
OF_CHANGED = "gender_error,lic,ba_directional,dbac,dpa"  # metrics


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
    link_photos(photos, test, out / "images")


def link_photos(photos: Path, images: Iterable[int], folder: Path) -> Path:
    """A folder of some of the photos."""
    folder.mkdir(exist_ok=True)
    for image in images:
        link = folder / f"{image:012d}.jpg"
        link.unlink(missing_ok=True)
        link.symlink_to((photos / "images" / link.name).resolve())
    return folder


def fit(photos: Path, out: Path, name: str = OURS, *options: str) -> Path:
    """Fit a SAT, or the GRIT of that name, to the photos to learn from; its folder."""
    kind, settings = ("grit", FIT_GRIT) if name == GRIT else ("sat", FIT)
    run_once(
        out / name, "fit", kind, *learnt_photos(photos, out), *settings, *options,
        f"paths.cache={out / 'cache'}", "--out", str(out / name),
    )  # fmt: skip
    return out / name


def learnt_photos(photos: Path, out: Path) -> tuple[str, ...]:
    """The photos to learn from, with their captions and labels."""
    return (
        "dataset=coco", "captioner=none", f"dataset.captions={out / 'train.json'}",
        f"dataset.attributes={out / 'train.csv'}", f"dataset.images={photos / 'images'}",
    )  # fmt: skip


def caption(folder: Path, model: Path, name: str, *masking: str) -> Path:
    """The file of a fitted captioner's captions of a folder of photos, beside the folder."""
    file = folder.parent / f"{name}.json"
    if not file.exists():
        written = folder.parent / f"written_{name}"
        words = ("--model", str(model), "--beams", "3", "--out", str(written))
        bias_pipeline("caption", str(folder), *words, *masking)
        bias_pipeline("caption", "--gather", str(written), "--to", str(file))
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


def mute(captions: Mapping[int, str], silent: Iterable[int], path: Path) -> Path:
    """A file of captions, of which those of some images name no gender."""
    chosen = set(silent)
    namings = compose.cell(["attribute=gender"]).build("attribute").namings()
    words = {word for naming in namings for _, of_group in naming.words for word in of_group}
    lines = [
        {
            "image_id": image,
            "caption": " ".join(
                "person" if image in chosen and word in words else word for word in text.split()
            ),
        }
        for image, text in captions.items()
    ]
    path.write_text(json.dumps(lines))
    return path


def muted_files(whole: Path, images: Iterable[int], out: Path) -> dict[str, Path]:
    """Captions from which the gender was taken out, by their name."""
    written = captions_of(whole)
    captions = {image: written[image] for image in images}
    named = zip(captions, groups_named(captions.values()), strict=True)
    naming = [image for image, group in named if group]
    random.Random(0).shuffle(naming)  # noqa: S311 - no secret
    files = {}
    for name, share in MUTED.items():
        more = round(share * len(captions)) - (len(captions) - len(naming))
        files[name] = mute(captions, naming[:more], out / f"muted_{share:.2f}.json")
    return files


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


def scored_photos(photos: Path, out: Path) -> tuple[str, ...]:
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
    words = (*scored_photos(photos, out), *COMMON[1:])
    whole = caption(out / "images", fit(photos, out), OURS)
    published = {name: data / "captioners" / f"{name}.json" for name in PUBLISHED}
    labels = labels_of(out / "test.csv")
    scored = link_photos(photos, labels, out / "scored")
    grit = caption(scored, fit(photos, out, GRIT), GRIT)
    changed = muted_files(whole, labels, out)
    files = {WHOLE: whole, BY_GRIT: grit, **changed, **published}
    naming_rows(files, labels).to_csv(NAMING, index=False, float_format="%.4f")
    metrics = ",".join(dict.fromkeys(name for name, _, _ in SCORES[:-1]))
    complete = _captioners([whole, grit, *published.values()])
    frames = [
        sweep("scores", out, *words, f"metric={metrics}", complete),
        sweep("changed", out, *words, f"metric={OF_CHANGED}", _captioners(changed.values())),
        sweep(
            "prior", out, *words, "metric=dbac", "metric.prior=labels",
            _captioners([whole, *changed.values()]),
        ),
    ]  # fmt: skip
    named = {slug(file.stem): name for name, file in files.items()}
    rows = pd.concat(frames, ignore_index=True)
    rows["captioner"] = rows["captioner"].map(lambda path: named[slug(Path(path).stem)])
    by_metric = rows["study"].isin(["scores", "changed"])
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
    tables = {
        "Scores (per cent, but for CIDEr-D and men to women)": markdown(
            table(rows, (WHOLE, BY_GRIT, *PUBLISHED))
        ),
        "Genders taken out": markdown(table(rows, (WHOLE, *MUTED)).T.rename_axis("score")),
        "What captions name (per cent)": markdown(counted, 1),
    }
    write_page(PAGE, "Results", __file__, tables)


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
