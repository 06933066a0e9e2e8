"""Values as they stand in CSV files, safe for whoever opens them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence


def table_csv(lines: Sequence[Mapping[str, object]]) -> str:
    """Lines of equal keys as CSV, each cell as :func:`csv_cell` has it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([list(lines[0])] if lines else [])
    writer.writerows([csv_cell(value) for value in line.values()] for line in lines)
    return text.getvalue()


def csv_cell(value: object) -> object:
    """A value as it stands in a cell: NaN is empty, text that a spreadsheet would run is quoted.

    Example:
        >>> csv_cell("=1+1"), csv_cell((0, 12)), csv_cell(float("nan"))
        ("'=1+1", '0 12', '')
    """
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    if isinstance(value, tuple | list):
        return " ".join(map(str, value))
    if isinstance(value, str):
        value = value.replace("\r", "\n")  # the csv module leaves a bare "\r" unquoted
        return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\n") else value
    return value
