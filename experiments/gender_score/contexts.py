"""The Gender Score by source of objects: annotations, people's words, or captioners'.

Usage: python -m experiments.gender_score.contexts [DATA_ROOT OUTPUTS]

With arguments everything is computed and context_rows.csv is written; without, the table is made
from that. Beside the data set's objects stand two other sources of real detections, each a file
with a confidence: how many of an image's human captions name an object, and how many of seven
captioners do. All on the images whose objects the data set knows. Texts that whole.py scored under
the same OUTPUTS are not scored again.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.run import compose
from experiments.gender_score.study import CAPTIONERS, PARTS
from experiments.study import cell, lic_data, markdown, rows_at, sweep, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "context_rows.csv", HERE / "CONTEXT.md"
ANNOTATED, PEOPLE, MODELS = "annotations", "human captions", "seven captioners"
SOURCES = (ANNOTATED, PEOPLE, MODELS)
FILES = {PEOPLE: "people", MODELS: "captioners"}
# Part to the same part of people.
PEOPLES_PART = {"score": "", "model": "human", "estimate:model": "estimate:human"}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """Rows of every captioner under every source."""
    words = (*lic_data(data), "logger=csv")
    votes = _votes(words)
    named = f"captioner={','.join(CAPTIONERS)}"
    frames = [sweep(ANNOTATED, outputs, "metric=gender_score", named, *words)]
    for source, shares in votes.items():
        path = outputs / f"context_{FILES[source]}.json"
        path.write_text(json.dumps(shares), encoding="utf-8")
        setting = f"metric.context={path}"
        frames.append(sweep(source, outputs, "metric=gender_score", setting, named, *words))
    rows = pd.concat(frames, ignore_index=True)
    return rows[rows["part"].isin([*PEOPLES_PART, *PEOPLES_PART.values()])]


def _votes(words: tuple[str, ...]) -> dict[str, list[dict[str, object]]]:
    """Source to its detections, for the images whose objects are known."""
    people: dict[tuple[str, str], float] = {}
    models: dict[tuple[str, str], float] = defaultdict(float)
    for name in CAPTIONERS:
        one = compose.cell(["metric=cooccurrence", f"captioner={name}", *words])
        metric = one.build("metric")
        view = CorpusView(one.corpus(), metric.attribute, None, metric.task, metric.exclude_tasks)
        people |= _shares(view, "human")
        for pair, share in _shares(view, "model").items():
            models[pair] += share / len(CAPTIONERS)
    return {
        source: [
            {"image_id": image, "label": label, "score": min(score, 1.0)}
            for (image, label), score in sorted(shares.items())
        ]
        for source, shares in ((PEOPLE, people), (MODELS, models))
    }


def _shares(view: CorpusView, side: str) -> dict[tuple[str, str], float]:
    """Image and object to the share of the image's captions that name it."""
    known = np.diff(view.objects.indptr) > 0
    named = sparse.coo_array(view.by_image(side, view.mentions(side).astype(float)))
    share = named.data / view.n_captions(side)[named.row]
    ids = view.corpus.ids
    return {
        (ids[row], view.tasks[task]): float(fraction)
        for row, task, fraction in zip(named.row, named.col, share, strict=True)
        if known[row]
    }


def table(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """One line per captioner, one column per source, in per cent."""
    lines = {name: _line(rows, part, name) for name in CAPTIONERS}
    if people := PEOPLES_PART[part]:  # the same beside every captioner
        lines["people"] = _line(rows, people, CAPTIONERS[0])
    images = rows[rows["part"] == part].groupby("study")["n_images"].max()
    lines["images"] = {source: str(images[source]) for source in SOURCES}
    return pd.DataFrame(lines).T.rename_axis("captioner")


def _line(rows: pd.DataFrame, part: str, captioner: str) -> dict[str, str]:
    scores = rows[(rows["part"] == part) & (rows["captioner"] == captioner)].set_index("study")
    return {source: cell(scores.loc[source]) for source in SOURCES}


def main(arguments: list[str]) -> None:
    rows = rows_at(ROWS, run, arguments)
    titles = {part: PARTS[part][0].upper() + PARTS[part][1:] for part in PEOPLES_PART}
    tables = {f"{title} (per cent)": markdown(table(rows, part)) for part, title in titles.items()}
    write_page(PAGE, "Context by source", __file__, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
