"""A part of a report before it has a format, and a reader for the tables of runs."""

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
    figures: Sequence[Plot] = ()  # figures that are not drawn yet
    tables: Sequence[Table] = ()  # tables
    notes: Sequence[str] = ()  # paragraphs below the tables
    metrics: Sequence[str] = ()  # the metrics that the section is about; empty for all
    captioner: str = ""  # the only captioner that it is about; empty if there are more
    chapter: str = ""  # the heading under which it is folded; empty if it stands open


def stored_lines(
    store: ResultStore, result: Result, table: str, columns: Set[str], damaged: list[str], lost: str
) -> list[dict[str, str]]:
    """The lines of a run's table; empty if the table or a wanted column is absent.

    If the file is damaged, ``damaged`` gets a sentence that ends in ``lost``.
    """
    try:
        lines = store.table(result, table)
    except DataError as error:
        damaged.append(f"{error}. {lost}")
        return []
    return lines if lines and lines[0].keys() >= columns else []
