"""A report, before it is written in any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bias_pipeline.report.report_tables import Section
from bias_pipeline.report.summary import Summary
from bias_pipeline.results.store import Row


@dataclass(frozen=True)
class Report:
    """A report of finished runs.

    Attributes:
        title: of the report.
        described: how much there is, in a sentence.
        sections: in the order of reading.
        limits: what the numbers cannot say.
        runs: run id to its manifest.
        settings: run id to the settings in which it differs from others of its metric.
        rows: every number of every run.
        bibtex: the sources of the metrics.
        summaries: the first screen, one for each attribute and data set.
    """

    title: str
    described: str
    sections: Sequence[Section]
    limits: Sequence[str]
    runs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    bibtex: str = ""
    summaries: Sequence[Summary] = ()

    def chapters(self) -> list[tuple[str, list[Section]]]:
        """Sections under their headings, in the order of reading.

        Example:
            >>> report = Report("t", "", [Section("a", chapter="c"), Section("b", chapter="c")], [])
            >>> [(name, len(sections)) for name, sections in report.chapters()]
            [('c', 2)]
        """
        chapters: dict[str, list[Section]] = {}
        for section in self.sections:
            chapters.setdefault(section.chapter or section.title, []).append(section)
        return list(chapters.items())
