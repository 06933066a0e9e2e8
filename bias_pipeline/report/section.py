"""A part of a report, before it is written in any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bias_pipeline.report.figures import Plot
from bias_pipeline.report.table import Table


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
