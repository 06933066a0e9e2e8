"""Errors over runs in place of intervals, for tables like those of a paper.

An interval of ours holds attackers and images. Papers print less: the standard deviation over
seeds (RELIC), or the half-width of a 95 % interval over runs (DBAC).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from bias_pipeline.report.report_tables import Cell, Runs, Section, Sheet, SheetNumber


def standard_deviation(runs: Runs) -> float:
    """The standard deviation over seeds (n - 1); NaN of one seed."""
    return runs.std


def half_width(runs: Runs) -> float:
    """Half of the 95 % interval of the mean over runs, by Student's t; NaN of one run.

    Example:
        >>> round(half_width(Runs(std=0.02, count=10)), 4)
        0.0143
    """
    from scipy import stats

    if runs.count < 2:
        return math.nan
    return float(stats.t.ppf(0.975, runs.count - 1)) * runs.std / math.sqrt(runs.count)


@dataclass(frozen=True)
class RunError:
    """An error over runs."""

    name: str  # of its column in files
    size: Callable[[Runs], float]  # from a number's runs to it
    legend: str  # what ± means


RUN_ERRORS = {
    "seeds": RunError("std", standard_deviation, "± is the standard deviation over seeds"),
    "interval": RunError(
        "ci95", half_width, "± is half of the 95 % interval over runs, without that of images"
    ),
}


def with_run_error(section: Section, error: RunError) -> Section:
    """A section whose numbers have this error in place of their interval.

    Numbers without runs (counts, numbers of images) have no error then.
    """
    return replace(section, sheets=[_sheet(sheet, error) for sheet in section.sheets])


def _sheet(sheet: Sheet, error: RunError) -> Sheet:
    rows = [[_cell(cell, error) for cell in row] for row in sheet.rows]
    changed = any(isinstance(cell, SheetNumber) and cell.half for row in rows for cell in row)
    caption = f"{sheet.caption}. {error.legend}" if changed else sheet.caption
    return replace(sheet, rows=rows, caption=caption)


def _cell(cell: Cell, error: RunError) -> Cell:
    if not isinstance(cell, SheetNumber) or cell.runs is None:
        return cell
    size = error.size(cell.runs)
    half = None if math.isnan(size) else (error.name, size)
    return replace(cell, low=None, high=None, half=half)
