"""The page that says which metric answers which question, from how many images, moved by what."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from bias_pipeline.metrics.base import QUESTIONS, MetricInfo
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.report.power import (
    MATCHED,
    PLANTED,
    Power,
    Usability,
    amount,
    measured_of,
    movements_of,
    usability,
)
from experiments.study import markdown

SIZES = (500, 2000, 8000)


def page(written: str) -> str:
    """The page with its last table made anew; what stands above it is written by hand."""
    lines = [
        line
        for question in QUESTIONS
        for info in infos().values()
        if info.question == question
        for line in _lines(info)
    ]
    table = markdown(pd.DataFrame(lines).set_index("metric"))
    above = written.partition(table.partition("\n")[0])[0]
    return above + table


def _lines(info: MetricInfo) -> Iterator[dict[str, str]]:
    """A line for each headline of a metric that a study measured."""
    for answer in usability(info):
        alignment = "matched" if answer.answer == MATCHED else "constant"
        powers = measured_of(info.name, answer.part)
        if not powers and not movements_of(info.name, answer.part, alignment):
            continue
        yield {
            "metric": f"`{info.name}`" + (f" `{answer.part}`" if answer.part != "score" else ""),
            "use it": answer.answer,
            f"{PLANTED} % found from": "; ".join(map(_least_images, powers)) or "–",
            "smallest score": _smallest(powers),
            "moved without bias": _reaction(info.name, answer, alignment),
        }


def _least_images(power: Power) -> str:
    size = power.smallest_size(PLANTED)
    return f"{'none' if size is None else f'{size:,} images'} ({power.any_measurement.design})"


def _smallest(powers: Sequence[Power]) -> str:
    if not powers:
        return "–"
    scores = (max(power.smallest(size) for power in powers) for size in SIZES)
    texts = [amount(score, powers[0].any_measurement.unit) for score in scores]
    unit = texts[0].partition(" ")[2]
    return f"{', '.join(text.partition(' ')[0] for text in texts)} {unit}"


def _reaction(metric: str, answer: Usability, alignment: str) -> str:
    lines = movements_of(metric, answer.part, alignment)
    if not lines:
        return "–"
    most = max(lines, key=lambda line: line.moved)
    half = "" if math.isnan(most.half_width) else f" ±{amount(most.half_width, most.unit)}"
    return f"{amount(most.moved, most.unit).partition(' ')[0]}{half} ({most.speaker})"
