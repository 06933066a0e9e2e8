"""The first rows of the benchmark: published captioners, language models, and annotators.

Usage: python -m experiments.benchmark.study [DATA [OUTPUTS]]

With DATA every file of captions is scored by the command ``benchmark``. Without, the tables are
made from rows.csv.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from bias_pipeline.commands.main import main as run_command
from bias_pipeline.errors import DataError
from bias_pipeline.report.benchmark import (
    METRICS,
    BenchmarkNumber,
    BenchmarkRow,
    Captioned,
    read_row,
    table_notes,
    table_of,
)
from bias_pipeline.report.table import cell_text
from experiments.study import markdown, rows_of, write_results

HERE = Path(__file__).resolve().parent
ANNOTATORS = {"one_annotator": 1, "two_annotators_joined": 2}
WHOLE, PART = "The whole list", "A part of the labelled images, other images in each row"
_COUNTS = ("labelled", "unsure")
_OF_ROW = (
    *("captioner", "version", "images", "no_group", "prompt", "captions_sha256"),
    *("labels_sha256", "reference_sha256", "program"),
)
_OF_NUMBER = (
    *("metric", "metric_version", "part", "value", "ci_low", "ci_high", "unit", "answer"),
    *("annotators", "n_images", "coverage", "reason"),
)


def measure(data: Path, outputs: Path) -> pd.DataFrame:
    """A line for each number of every row."""
    coco = data / "coco"
    people = coco / "annotations" / "captions_val2014.json"
    files = [write_annotators(people, outputs, name, joined) for name, joined in ANNOTATORS.items()]
    models = [*(data / "captioners").glob("*.json"), *(data / "vlm").glob("*.json")]
    files += [(path, people) for path in sorted(models) if path.name != "meta.json"]
    rows = [_score(captions, others, coco, outputs) for captions, others in files]
    return pd.DataFrame([line for row in rows for line in lines_of(row)])


def write_annotators(people: Path, outputs: Path, name: str, joined: int) -> tuple[Path, Path]:
    """The first annotators of each image as a captioner, and the captions of the others."""
    content = json.loads(people.read_text())
    by_image: dict[int, list[dict[str, object]]] = {}
    for line in content["annotations"]:
        by_image.setdefault(line["image_id"], []).append(line)
    captions, others = [], []
    for image, lines in by_image.items():
        if len(lines) > joined:
            text = " ".join(f"{str(line['caption']).strip(' .')}." for line in lines[:joined])
            captions.append({"image_id": image, "caption": text})
            others += lines[joined:]
    outputs.mkdir(parents=True, exist_ok=True)
    model, rest = outputs / f"{name}.json", outputs / f"{name}_others.json"
    model.write_text(json.dumps(captions))
    rest.write_text(json.dumps({**content, "annotations": others}))
    return model, rest


def _score(captions: Path, people: Path, coco: Path, outputs: Path) -> BenchmarkRow:
    """The row of a file: on the whole list, or else on the images that it has."""
    out = outputs / captions.stem
    words = [
        *("benchmark", str(captions), "--out", str(out)),
        *("--attributes", str(coco / "attributes" / "images_val2014.csv")),
        *("--captions", str(people)),
        *("--objects", str(coco / "annotations" / "instances_val2014.json")),
    ]
    code = run_command(words)
    if code == DataError.exit_code:
        code = run_command([*words, "--part"])
    if code:
        raise SystemExit(code)
    return read_row(out / "row.json")


def lines_of(row: BenchmarkRow) -> list[dict[str, object]]:
    """A line for each number of a row, with what it rests on."""
    counts = {
        f"{name}_{key}": getattr(getattr(row, name), key) for name in _COUNTS for key in ("n", "of")
    }
    about = {name: getattr(row, name) for name in _OF_ROW} | counts
    return [
        {**about, "question": question, **{name: getattr(number, name) for name in _OF_NUMBER}}
        for question, number in row.numbers.items()
    ]


def rows_in(lines: pd.DataFrame) -> list[BenchmarkRow]:
    """The rows that :func:`lines_of` wrote."""
    return [_row_in(of_one) for _, of_one in lines.groupby("captioner", sort=False)]


def _row_in(lines: pd.DataFrame) -> BenchmarkRow:
    first: Mapping[str, object] = lines.iloc[0]
    counts = {name: Captioned(first[f"{name}_n"], first[f"{name}_of"]) for name in _COUNTS}
    numbers = {
        line["question"]: BenchmarkNumber(**{name: line[name] for name in _OF_NUMBER})
        for _, line in lines.iterrows()
    }
    assert [*numbers] == [*METRICS]
    return BenchmarkRow(**{name: first[name] for name in _OF_ROW}, **counts, numbers=numbers)


def main(arguments: list[str]) -> None:
    rows = rows_in(read_lines(rows_of(HERE, measure, arguments)))
    tables = {}
    for kind, title in (("list", WHOLE), ("part", PART)):
        alike = [row for row in rows if row.images == kind]
        notes = "".join(f"* {note}\n" for note in table_notes(alike))
        table = table_of(alike)
        cells = [[cell_text(cell) for cell in row] for row in table.rows]
        shown = markdown(pd.DataFrame(cells, columns=list(table.head)).set_index(table.head[0]))
        tables[title] = f"{table.caption}.\n\n{shown}\n{notes}"
    write_results(HERE, tables)


def read_lines(lines: pd.DataFrame) -> pd.DataFrame:
    """Lines in which an absent text is empty, as in a row."""
    texts = ["part", "unit", "answer", "reason", "prompt"]
    return lines.assign(**{name: lines[name].fillna("") for name in texts})


if __name__ == "__main__":
    main(sys.argv[1:])
