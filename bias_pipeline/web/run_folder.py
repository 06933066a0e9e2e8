"""The runs of a folder, read again only where something changed, and the table of headlines."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bias_pipeline.errors import DataError
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.catalogue import info_of
from bias_pipeline.metrics.value_names import SCORE
from bias_pipeline.report.exports import CONTENTS
from bias_pipeline.report.page import require_runs_folder
from bias_pipeline.report.report_tables import SheetNumber, started
from bias_pipeline.report.tables import ARROWS, pointing, training_of
from bias_pipeline.results.rows import Result, Row, direction_in
from bias_pipeline.results.settings import label, seeds_text, with_settings
from bias_pipeline.results.store import RESULT, UNFINISHED, ResultStore
from bias_pipeline.web.views import View, sorted_by

_OF_A_RUN = ("rows.csv", "predictions.parquet")  # what a run writes before its result


class RunFolder:
    """Finished runs, and what is wrong with the others.

    Args:
        root: the folder.

    Attributes:
        runs: run id to result, with the settings in which it differs from others.
        faults: a sentence on each thing that is left out.

    Raises:
        ResourceError: if there is no such folder.
        DataError: if it holds no finished run that can be read, or is that of one run.
    """

    def __init__(self, root: Path) -> None:
        require_runs_folder(root)
        self.store = ResultStore(root)
        self.runs: dict[str, Result] = {}
        self.faults: list[str] = []
        self._read: dict[str, tuple[int, Result | str]] = {}
        self._lock = threading.Lock()
        self.refresh()
        if not self.runs:
            why = f" that can be read ({self.faults[0]})" if self.faults else ""
            raise DataError(f"{root} contains no finished run{why}; run one first")

    def refresh(self) -> None:
        """Read the runs that came or changed since the last time."""
        with self._lock:
            paths = sorted(self.store.root.glob(f"[!.]*/{RESULT}"))
            self._read = {path.parent.name: self._entry(path) for path in paths}
            entries = [entry for _, entry in self._read.values()]
            results = with_settings(entry for entry in entries if isinstance(entry, Result))
            self.runs = {result.run_id: result for result in results}
            damaged = [entry for entry in entries if isinstance(entry, str)]
            self.faults = [*damaged, *self._unfinished()]

    def _entry(self, path: Path) -> tuple[int, Result | str]:
        """When a result was written, and the result or a sentence on it."""
        run_id, written = path.parent.name, path.lstat().st_mtime_ns
        known = self._read.get(run_id)
        if known and known[0] == written:
            return known
        try:
            result = self.store.read(run_id)
        except DataError as error:
            return written, str(error)
        return written, result or f"{path} is absent; run the job again"

    def _unfinished(self) -> list[str]:
        """A sentence on each run that is being computed or was not finished."""
        temporary = sorted(self.store.root.glob(f".*{UNFINISHED}"))
        visible = [
            path
            for path in sorted(self.store.root.glob("[!.]*"))
            if not any((path / name).exists() for name in (RESULT, CONTENTS))
            and any((path / name).exists() for name in _OF_A_RUN)
        ]
        return [
            *(self._state(path.name.removesuffix(UNFINISHED)[1:]) for path in temporary),
            *(f"{path.name} has no {RESULT}; run the job again" for path in visible),
        ]

    def _state(self, name: str) -> str:
        """A sentence on a run in the folder that it is written to."""
        run_id = name.rpartition(".")[0]
        if self.store.is_claimed(run_id):
            return f"{run_id} is being written"
        return f"{run_id} was not finished; run the job again"


def version_note(result: Result) -> str:
    """A sentence if this version of the metric would give other numbers; else empty."""
    row = result.rows[0]
    info = info_of(row.metric)
    if info is not None and info.version == row.metric_version:
        return ""
    today = "there is no such metric now" if info is None else f"today's is {info.version}"
    return (
        f"These numbers are of version {row.metric_version} of {row.metric}; {today}. Run the job "
        "again before you compare them with others."
    )


CHOSEN = ("metric", "attribute", "dataset", "captioner")  # by which runs are filtered
KNOWN = (*CHOSEN, "find", "sort", "page")
_TONES = {"↑": "worse", "↓": "better"}


@dataclass(frozen=True)
class RunLine:
    """A headline of a run."""

    result: Result  # of the run
    row: Row  # of the headline

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
    tone = _TONES.get(arrow, "") if "lower is fairer" in direction_in(result) else ""
    return SheetNumber.of(row, arrow, tone)


def headline_rows(result: Result) -> list[Row]:
    """The rows by which a run is known; its first one if it has no headline."""
    return [row for row in result.rows if row.part in HEADLINES] or [result.rows[0]]


def run_lines(results: Iterable[Result]) -> list[RunLine]:
    """All lines, by metric, attribute, data set and captioner."""
    lines = [RunLine(result, row) for result in results for row in headline_rows(result)]
    return sorted(lines, key=lambda line: [getattr(line.row, name) for name in CHOSEN])


def filter_choices(lines: Sequence[RunLine]) -> dict[str, list[str]]:
    """The values of each filter."""
    return {name: sorted({getattr(line.row, name) for line in lines}) for name in CHOSEN}


def shown_lines(lines: Sequence[RunLine], view: View) -> list[RunLine]:
    """The lines that a view shows, in its order."""
    words = view["find"].lower().split()
    fitting = [
        line
        for line in lines
        if all(view[name] in ("", getattr(line.row, name)) for name in CHOSEN)
        and all(word in line.text for word in words)
    ]
    return sorted_by(fitting, view, _KEYS, "metric")
