"""A part of a report, before it is written in any format, and tables of runs for it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from bias_pipeline.errors import DataError
from bias_pipeline.report.figures import Plot
from bias_pipeline.report.table import Table
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore


@dataclass(frozen=True)
class Section:
    """A part of a report: texts, figures, tables and notes, in this order."""

    title: str  # its heading
    texts: Sequence[str] = ()  # paragraphs above the figures
    figures: Sequence[Plot] = ()  # not drawn yet
    tables: Sequence[Table] = ()  # tables
    notes: Sequence[str] = ()  # paragraphs below the tables
    metrics: Sequence[str] = ()  # those it is about; empty if about all
    captioner: str = ""  # the only one it is about; empty if there are more
    chapter: str = ""  # the heading under which it is folded; empty if it is open under its own


def stored_lines(
    store: ResultStore, result: Result, table: str, columns: Set[str], damaged: list[str], lost: str
) -> list[dict[str, str]]:
    """The lines of a run's table; empty if it has no such table, or one without the columns.

    Of a damaged file ``damaged`` gets a sentence, with what is ``lost`` by it.
    """
    try:
        lines = store.table(result, table)
    except DataError as error:
        damaged.append(f"{error}. {lost}")
        return []
    return lines if lines and lines[0].keys() >= columns else []
