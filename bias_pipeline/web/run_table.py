"""The table of runs: a line for each headline, filtered and sorted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import SCORE
from bias_pipeline.report.report_tables import SheetNumber, started, training_of
from bias_pipeline.report.tables import ARROWS, pointing
from bias_pipeline.results.settings import label, seeds_text
from bias_pipeline.results.store import Result, Row
from bias_pipeline.web.views import View, sorted_by

CHOSEN = ("metric", "attribute", "dataset", "captioner")  # by which runs are filtered
KNOWN = (*CHOSEN, "find", "sort", "page")
_TONES = {"↑": "worse", "↓": "better"}


@dataclass(frozen=True)
class RunLine:
    """A headline of a run.

    Attributes:
        result: of the run.
        row: of the headline.
    """

    result: Result
    row: Row

    @property
    def number(self) -> SheetNumber:
        """Its value and interval."""
        return number_of(self.row, self.result)

    @property
    def part(self) -> str:
        """The headline's name; empty for the usual one."""
        return "" if self.row.part == SCORE else ARROWS.get(self.row.part, self.row.part)

    @property
    def settings(self) -> str:
        """The settings in which it differs from runs of its metric, attribute and data set."""
        return label(self.result)

    @property
    def seeds(self) -> str:
        """As they are written in a command."""
        return seeds_text(self.row.seeds) if self.row.n_seeds else ""

    @property
    def day(self) -> str:
        """When the run began."""
        return started(self.result).replace("T", " ")[:16]

    @property
    def mark(self) -> str:
        """A sign after a captioner that is not known to be trained on this data set."""
        return "" if training_of(self.result) else " †"

    @property
    def text(self) -> str:
        """All by which it is searched, in lower case."""
        names = [getattr(self.row, name) for name in (*CHOSEN, "part")]
        return " ".join([*names, self.settings, self.result.run_id, self.day]).lower()


_KEYS = {
    "metric": lambda line: line.row.metric,
    "captioner": lambda line: line.row.captioner.lower(),
    "value": lambda line: line.row.value,
    "attribute": lambda line: line.row.attribute,
    "dataset": lambda line: line.row.dataset,
    "settings": lambda line: line.settings,
    "images": lambda line: float(line.row.n_images),
    "started": lambda line: started(line.result),
}


def number_of(row: Row, result: Result) -> SheetNumber:
    """A number as tables show it; headlines have an arrow."""
    arrow = pointing(row, result) if row.part in HEADLINES else ""
    return SheetNumber.of(row, arrow, _TONES.get(arrow, "") if _lower_is_fairer(result) else "")


def _lower_is_fairer(result: Result) -> bool:
    metric = result.manifest.get("metric", {})
    return isinstance(metric, Mapping) and "lower is fairer" in str(metric.get("direction", ""))


def headlines(result: Result) -> list[Row]:
    """The rows by which a run is known; its first one if it has no headline."""
    return [row for row in result.rows if row.part in HEADLINES] or [result.rows[0]]


def run_lines(results: Iterable[Result]) -> list[RunLine]:
    """All lines, by metric, attribute, data set and captioner."""
    lines = [RunLine(result, row) for result in results for row in headlines(result)]
    return sorted(lines, key=lambda line: [getattr(line.row, name) for name in CHOSEN])


def choices(lines: Sequence[RunLine]) -> dict[str, list[str]]:
    """The values of each filter."""
    return {name: sorted({getattr(line.row, name) for line in lines}) for name in CHOSEN}


def shown_lines(lines: Sequence[RunLine], view: View) -> list[RunLine]:
    """The lines that a view shows, in its order.

    Raises:
        HTTPException: if there is no such order.
    """
    words = view["find"].lower().split()
    fitting = [
        line
        for line in lines
        if all(view[name] in ("", getattr(line.row, name)) for name in CHOSEN)
        and all(word in line.text for word in words)
    ]
    return sorted_by(fitting, view, _KEYS, "metric")
