"""All that a report holds, before it is written in any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bias_pipeline.report.sheets import Section
from bias_pipeline.report.summary import Summary
from bias_pipeline.results.store import Row


@dataclass(frozen=True)
class Report:
    """All that is told of some finished runs.

    Attributes:
        title: of the whole.
        described: how much there is, in a sentence.
        sections: in the order of reading.
        limits: what the numbers cannot say.
        runs: run id to its manifest.
        settings: run id to what tells it from others of its metric.
        rows: every number of every run.
        bibtex: the sources of the metrics.
        summaries: what is answered first, one for each attribute and data set.
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
            >>> [(name, len(own)) for name, own in report.chapters()]
            [('c', 2)]
        """
        found: dict[str, list[Section]] = {}
        for section in self.sections:
            found.setdefault(section.chapter or section.title, []).append(section)
        return list(found.items())
