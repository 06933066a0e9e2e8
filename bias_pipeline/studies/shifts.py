"""A table of how far numbers shift when pictures change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table
from bias_pipeline.studies.feature_sensitivity import (
    CHANGES,
    TITLES,
    Shift,
    is_steady,
)


def print_shifts(lines: Sequence[Shift]) -> None:
    """Each number with its shifts, in per cent where it is a fraction."""
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
    caption = "Score, and by how much it shifts; per cent where it is a fraction"
    header = ["metric", *(["attribute"] if several else []), "alignment", "number", "score"]
    header += [*(TITLES[name] for name in CHANGES), ""]
    print_table(Table(caption, header, rows, keys=header.index("score"), texts=True))
