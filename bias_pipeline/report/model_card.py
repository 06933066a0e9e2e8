"""A captioner's bias as a section of its model card, in Markdown with the hub's YAML in front.

The front matter is the ``model-index`` that the hub reads: a result for each number, with its
interval among its settings, as the hub has no field for one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from bias_pipeline import __version__
from bias_pipeline.errors import DataError
from bias_pipeline.io.terminal import printable
from bias_pipeline.metrics.catalogue import info_of
from bias_pipeline.metrics.value_names import HEADLINES, MODEL
from bias_pipeline.report.page import Report
from bias_pipeline.report.report_tables import SheetNumber, without_places
from bias_pipeline.report.summary import Summary
from bias_pipeline.report.text_formats import escape_markdown
from bias_pipeline.results.store import Row

_TASK = {"type": "image-to-text", "name": "Image Captioning"}
_LEVEL = "the captioner's own level: without people's captions there is no score"
# Columns of a row that say how a number was made, where they are not empty.
_ARGUMENTS = ("attribute", "part", "encoder", "head", "masking", "alignment", "scoring")


def model_card(report: Report) -> str:
    """The section, for a README.md of a model or to be added to one.

    Raises:
        DataError: if the report has several captioners, or no number.
    """
    names = sorted({row.captioner for row in report.rows})
    if len(names) > 1:
        raise DataError(
            f"a card is of one captioner, and these runs are of {len(names)} "
            f"({', '.join(names[:3])}): name a folder with the runs of one"
        )
    rows = list(_headlines(report))
    if not rows:
        raise DataError("no run has a number that stands for its metric: there is nothing to write")
    name = printable(without_places(names[0]))
    index = {"model-index": [{"name": name, "results": [_result(row) for row in rows]}]}
    front = yaml.safe_dump(index, sort_keys=False, allow_unicode=True)
    sections = [text for summary in report.summaries for text in _summary(summary)]
    return "\n".join([f"---\n{front}---\n", *_body(report, rows, sections)])


def _headlines(report: Report) -> Iterator[Row]:
    """The numbers that stand for each run; its side of the captioner where people's is absent."""
    for run_id in dict.fromkeys(row.run_id for row in report.rows):
        rows = {row.part: row for row in report.rows if row.run_id == run_id}
        finite = [rows[part] for part in HEADLINES if part in rows and _is_finite(rows[part])]
        yield from finite or [rows[part] for part in (MODEL,) if part in rows]


def _is_finite(row: Row) -> bool:
    return math.isfinite(row.value)


def _result(row: Row) -> dict[str, Any]:
    """A number as the hub's ``model-index`` has it; a fraction stays one."""
    info = info_of(row.metric)
    arguments: dict[str, Any] = {name: text for name in _ARGUMENTS if (text := getattr(row, name))}
    ends = {"ci_low": row.ci_low, "ci_high": row.ci_high, "p_value": row.p_value}
    arguments |= {name: round(value, 6) for name, value in ends.items() if math.isfinite(value)}
    arguments |= {
        "n_images": row.n_images,
        "n_seeds": row.n_seeds,
        "unit": row.unit,
        "metric_version": row.metric_version,
    }
    metric = {
        "type": row.metric,
        "name": info.title if info else row.metric,
        "value": round(row.value, 6),
        "args": arguments,
    }
    return {
        "task": dict(_TASK),
        "dataset": {"type": row.dataset, "name": row.dataset},
        "metrics": [metric],
    }


def _body(report: Report, rows: list[Row], sections: list[str]) -> Iterator[str]:
    yield "## Bias\n"
    yield (
        f"Measured by bias_pipeline {__version__}: is this captioner more biased than people who "
        "described the same images? Intervals hold attackers and images.\n"
    )
    yield from sections
    yield "### Numbers\n"
    yield "| metric | attribute | data set | value | reads | settings | images |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    yield from map(_line, rows)
    yield "\nNumbers whose unit is a fraction are in per cent here and fractions above.\n"
    yield "### Limits\n"
    yield from (f"* {escape_markdown(limit)}" for limit in report.caveats)
    if report.bibtex:
        yield f"\n### Sources\n\n```bibtex\n{report.bibtex.strip()}\n```"
    yield ""


def _summary(summary: Summary) -> Iterator[str]:
    """What was scored, the verdict, and what is not known."""
    yield f"### {escape_markdown(summary.title)}\n"
    yield (
        "; ".join(f"{name.lower()}: {escape_markdown(value)}" for name, value in summary.facts)
        + ".\n"
    )
    yield from (
        f"{escape_markdown(sentence)}\n"
        for sentence in (*summary.verdict, summary.sure)
        if sentence
    )
    yield from (f"* Not concluded: {escape_markdown(sentence)}" for sentence in summary.undecided)
    yield ""


def _line(row: Row) -> str:
    info = info_of(row.metric)
    settings = [f"{name} {text}" for name in _ARGUMENTS[2:] if (text := getattr(row, name))]
    number = SheetNumber.of(row)
    cells = [
        f"{row.metric} {row.part}",
        row.attribute,
        row.dataset,
        (number if math.isfinite(row.ci_low) else replace(number, low=None)).text,
        info.direction if info and row.part in HEADLINES else _LEVEL,
        ", ".join(settings) or "–",
        f"{row.n_images:,}",
    ]
    return "| " + " | ".join(map(escape_markdown, cells)) + " |"
