"""CSV for people, which we also read back.

A spreadsheet runs a cell that begins like a formula. Such a text gets a leading single quote, which
spreadsheets take for "this is text"; :func:`read_csv` removes it. Numbers, also negative ones, are
not changed.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence

# The beginnings of formulas, also in full width, also after quotes of the text itself.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def csv_text(lines: Iterable[Sequence[object]]) -> str:
    r"""Lines of values as CSV; NaN becomes an empty cell, a list its items joined by blanks.

    Example:
        >>> csv_text([("id", "value"), ("=1+1", -0.5), ("a", math.nan)])
        "id,value\n'=1+1,-0.5\na,\n"
    """
    return "".join(map(_line, lines))


def table_csv(lines: Sequence[Mapping[str, object]]) -> str:
    """Mappings with equal keys as CSV, the keys as header; empty for no lines."""
    head = list(lines[0]) if lines else []
    return csv_text([head, *([line[key] for key in head] for line in lines)] if lines else [])


def read_csv(text: str) -> list[dict[str, str]]:
    r"""The lines below the header, all values as text; the inverse of :func:`csv_text`.

    Raises:
        ValueError: if it is not CSV, or its lines differ in length.

    Example:
        >>> read_csv("id,value\n'=1+1,-0.5\n")
        [{'id': '=1+1', 'value': '-0.5'}]
    """
    try:
        lines = [[*map(_bare, line)] for line in csv.reader(io.StringIO(text, newline=""))]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def _line(values: Sequence[object]) -> str:
    text = io.StringIO()
    # csv quotes only characters of the terminator, and both kinds of line break need quotes.
    csv.writer(text, lineterminator="\r\n").writerow([_cell(value) for value in values])
    return text.getvalue()[:-2] + "\n"


def _cell(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if isinstance(value, tuple | list):
        value = " ".join(map(str, value))
    return _guarded(value) if isinstance(value, str) else value


def _guarded(text: str) -> str:
    return "'" + text if _FORMULA.match(text) else text


def _bare(text: str) -> str:
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text
