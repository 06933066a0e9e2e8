"""Measures whether scores change when only parts of pictures change that show nobody's group.

A captioner describes the pictures three times: unchanged, with the background slightly blurred, and
with one object in ten hidden. A number is steady if after each change it lies within its interval
for unchanged pictures. Otherwise the number depends on features that should not matter.

The command ``python -m experiments.feature_sensitivity.study`` measured the shifts in
``features.csv``, which the cards of metrics show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

from bias_pipeline.report.power import read_records
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table
from bias_pipeline.results.rows import Result
from bias_pipeline.stats.compare import paired_difference

WHOLE = "whole"
# By name of a change, the choice of image_masking.
CHANGES: Mapping[str, str] = {"background": "background", "objects": "some_objects"}
TITLES = {"background": "background blurred", "objects": "one object in ten hidden"}


@dataclass(frozen=True)
class Shift:
    """How one number changes under one change of the pictures."""

    metric: str  # its name
    metric_version: int  # its version
    attribute: str  # whose groups
    alignment: str  # alignment of human captions; empty without alignment
    part: str  # which number
    unit: str  # of the number
    change: str  # one of `CHANGES`
    n_images: int  # images on which the number rests
    score: float  # the number for captions of pictures as they are
    ci_low: float  # lower end of its interval
    ci_high: float  # upper end
    shift: float  # by how much the number for captions of changed pictures is higher
    shift_low: float  # lower end of the shift's paired interval
    shift_high: float  # upper end
    p_value: float  # two-sided p of no shift

    @property
    def is_within(self) -> bool:
        """Whether the number for changed pictures lies in the interval for unchanged pictures."""
        return self.ci_low <= self.score + self.shift <= self.ci_high


def shifts(results: Sequence[Result]) -> list[Shift]:
    """The shift of every number on which conclusions rest."""
    by_captioner: dict[str, dict[tuple[str, str, str], Result]] = {}
    for result in results:
        row = result.rows[0]
        key = (row.metric, row.attribute, row.alignment)
        by_captioner.setdefault(row.captioner, {})[key] = result
    return [
        shift
        for key, whole in by_captioner.get(WHOLE, {}).items()
        for part in whole.draws
        for change in CHANGES
        for shift in _shift(whole, by_captioner.get(change, {}).get(key), part, change)
    ]


def _shift(whole: Result, changed: Result | None, part: str, change: str) -> Iterable[Shift]:
    """The shift of one number, or nothing if a number is absent or has no interval."""
    if changed is None or part not in changed.draws:
        return
    (row,) = (row for row in whole.rows if row.part == part)
    difference = paired_difference(changed.draws[part], whole.draws[part])
    if row.ci_low < row.ci_high:
        yield Shift(
            row.metric,
            row.metric_version,
            row.attribute,
            row.alignment,
            part,
            row.unit,
            change,
            row.n_images,
            row.value,
            row.ci_low,
            row.ci_high,
            difference.value,
            difference.ci_low,
            difference.ci_high,
            difference.p_value,
        )


def shifts_of(metric: str, part: str) -> list[list[Shift]]:
    """The measured shifts of a number, in one list for each alignment."""
    lines = [line for line in measured_shifts() if (line.metric, line.part) == (metric, part)]
    return [
        [line for line in lines if line.alignment == alignment]
        for alignment in dict.fromkeys(line.alignment for line in lines)
    ]


def is_steady(lines: Iterable[Shift]) -> bool:
    """Whether a number stays within its interval under every change."""
    return all(line.is_within for line in lines)


@cache
def measured_shifts() -> Sequence[Shift]:
    """All shifts in ``features.csv``."""
    return read_records(files("bias_pipeline.studies") / "features.csv", Shift)


def print_shifts(lines: Sequence[Shift]) -> None:
    """Print each number with its shifts. Fractions are in per cent."""
    rows: list[list[Cell]] = []
    several = len({line.attribute for line in lines}) > 1
    for (metric, attribute, alignment, part), both in groupby(
        lines, key=lambda line: (line.metric, line.attribute, line.alignment, line.part)
    ):
        numbers = list(both)
        cells = {
            line.change: NumberCell.in_unit(line.unit, line.shift, line.shift_low, line.shift_high)
            for line in numbers
        }
        first = numbers[0]
        rows.append(
            [
                metric,
                *([attribute] if several else []),
                alignment,
                part,
                NumberCell.in_unit(first.unit, first.score, first.ci_low, first.ci_high),
                *(cells.get(change, "") for change in CHANGES),
                "steady" if is_steady(numbers) else "not",
            ]
        )
    caption = "Score, and by how much it shifts; fractions are in per cent"
    header = ["metric", *(["attribute"] if several else []), "alignment", "number", "score"]
    header += [*(TITLES[name] for name in CHANGES), ""]
    print_table(Table(caption, header, rows, keys=header.index("score"), texts=True))
