"""A result as a sentence: what Python shows of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bias_pipeline.metrics.value_names import HEADLINES, HUMAN, MODEL

_DIGITS = 3  # of a number that is no share


class Sentence:
    """Shown as its main numbers; its table has all."""

    rows: Sequence[Any]

    def __repr__(self) -> str:
        """Metric, captioner, data and main numbers, shares in per cent.

        Example:
            >>> Sentence()
            no numbers
        """
        rows = getattr(self, "rows", ())
        if not rows:
            return "no numbers"
        main = [row for row in rows if row.part in (*HEADLINES, MODEL, HUMAN)]
        of = f"{rows[0].metric} ({rows[0].attribute}) of {rows[0].captioner} on {rows[0].dataset}"
        more = len(rows) - len(main)
        numbers = ", ".join(map(_number, main)) or "no main number"
        return f"{of}: {numbers}{f'; {more} more in frame()' if more else ''}"


def _number(row: Any) -> str:
    """A part with its interval, if it has one."""
    if math.isnan(row.value):
        return f"{row.part} undefined"
    share = row.unit == "fraction"
    value, low, high = (
        f"{100 * one:.1f}" if share else f"{one:.{_DIGITS}g}"
        for one in (row.value, row.ci_low, row.ci_high)
    )
    interval = "" if math.isnan(row.ci_low) else f" [{low}, {high}]"
    return f"{row.part} {value}{interval}{' %' if share else ''}"
