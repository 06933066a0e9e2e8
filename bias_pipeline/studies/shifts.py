"""A table of how far numbers shift when pictures change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.report.tables import number, percent
from bias_pipeline.studies.feature_sensitivity import (
    CHANGES,
    TITLES,
    Shift,
    is_steady,
)


def print_shifts(lines: Sequence[Shift]) -> None:
    """Each number with its shifts, in per cent where it is a fraction."""
    table = []
    several = len({line.attribute for line in lines}) > 1
    for (metric, attribute, alignment, part), both in groupby(
        lines, key=lambda line: (line.metric, line.attribute, line.alignment, line.part)
    ):
        numbers = list(both)
        cells = {line.change: _text(line.shift, line.shift_low, line.shift_high, line.unit)
                 for line in numbers}  # fmt: skip
        first = numbers[0]
        table.append(
            [
                metric,
                *([attribute] if several else []),
                alignment,
                part,
                _text(first.score, first.ci_low, first.ci_high, first.unit),
                *(cells.get(change, "") for change in CHANGES),
                "steady" if is_steady(numbers) else "not",
            ]
        )
    print_out("Score, and by how much it shifts; per cent where it is a fraction")
    header = ["metric", *(["attribute"] if several else []), "alignment", "number", "score"]
    header += [*(TITLES[name] for name in CHANGES), ""]
    print_table(header, table, keys=header.index("score"), left=len(header))


def _text(value: float, low: float, high: float, unit: str) -> str:
    written = percent if unit == "fraction" else number
    return f"{written(value)} [{written(low)}, {written(high)}]"
