"""Reads the runs of a folder again if they changed, and makes the table of headlines."""

from __future__ import annotations

import operator
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.catalogue import info_of
from bias_pipeline.metrics.value_names import SCORE
from bias_pipeline.people.web.views import View
from bias_pipeline.report.exports import CONTENTS
from bias_pipeline.report.page import require_runs_folder
from bias_pipeline.report.table import NumberCell
from bias_pipeline.report.tables import ARROWS, pointing, training_of
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import label, seeds_text, with_settings
from bias_pipeline.results.store import RESULT, UNFINISHED, ResultStore

_OF_ONE_GROUP = ("metric", "attribute", "dataset")  # runs whose settings are compared
_OF_A_RUN = ("rows.csv", "predictions.parquet")  # files that a run writes before its result

Stamp = tuple[int, int, int]  # when a file was written, its size, and its inode
# The stamp of the result in a folder, None without a result; then the result, or a sentence on its
# fault, or None if the folder does not belong to a run
SeenFolder = tuple[Stamp | None, Result | str | None]


@dataclass(frozen=True)
class RunIndex:
    runs: dict[str, Result]  # by run id, with the settings in which a result differs from others
    faults: list[str]  # a sentence on each folder that is left out

    @cached_property
    def lines(self) -> list[RunLine]:
        lines = [
            RunLine(result, row) for result in self.runs.values() for row in headline_rows(result)
        ]
        return sorted(lines, key=lambda line: [getattr(line.row, name) for name in CHOSEN])

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        return {name: sorted({getattr(line.row, name) for line in self.lines}) for name in CHOSEN}


class RunFolder:
    def __init__(self, root: Path) -> None:
        require_runs_folder(root)
        self.store = ResultStore(root)
        self.index = RunIndex({}, [])
        self._folders: dict[str, SeenFolder] = {}
        self._groups: dict[tuple[str, ...], tuple[list[Result], list[Result]]] = {}
        self._lock, self._looked = threading.Lock(), -1.0
        self.refresh()
        if not self.index.runs:
            faults = self.index.faults
            why = f" that can be read ({faults[0]})" if faults else ""
            raise DataError(f"{root} contains no finished run{why}; run one first")

    def refresh(self) -> None:
        """Read the runs that are new or that have changed since the last call."""
        begun = time.monotonic()
        with self._lock:
            if self._looked > begun:  # another request looked while this one waited
                return
            self._looked = time.monotonic()
            self._look()

    def _look(self) -> None:
        try:
            names = sorted(path.name for path in self.store.root.iterdir())
        except OSError as error:
            raise ResourceError(f"{self.store.root}: cannot be read ({error.strerror})") from error
        folders = {name: self._folder(name) for name in names if not name.startswith(".")}
        damaged = [entry for _, entry in folders.values() if isinstance(entry, str)]
        unfinished = [
            self._unfinished_run(name.removesuffix(UNFINISHED)[1:].rpartition(".")[0])
            for name in names
            if name.startswith(".") and name.endswith(UNFINISHED)
        ]
        faults = [*damaged, *unfinished]
        if faults != self.index.faults or folders != self._folders:
            results = [entry for _, entry in folders.values() if isinstance(entry, Result)]
            self.index = RunIndex(self._with_settings(results), faults)
        self._folders = folders

    def _with_settings(self, results: Iterable[Result]) -> dict[str, Result]:
        """Results with the settings in which they differ; only groups that changed are compared."""
        members: defaultdict[tuple[str, ...], list[Result]] = defaultdict(list)
        for result in results:
            members[tuple(getattr(result.rows[0], name) for name in _OF_ONE_GROUP)].append(result)
        groups = {}
        for key, group in members.items():
            known, compared = self._groups.get(key, ([], []))
            same = len(known) == len(group) and all(map(operator.is_, known, group))
            groups[key] = (group, compared if same else with_settings(group))
        self._groups = groups
        by_id = {one.run_id: one for _, compared in groups.values() for one in compared}
        return {result.run_id: by_id[result.run_id] for result in results}

    def _folder(self, name: str) -> SeenFolder:
        """A folder that may contain a run, and is read only after a change."""
        path, known = self.store.root / name, self._folders.get(name)
        try:
            about = (path / RESULT).lstat()
        except OSError:
            is_run = any((path / part).exists() for part in _OF_A_RUN)
            if not is_run or (path / CONTENTS).exists():
                return None, None
            return None, f"{name} has no {RESULT}; run the job again"
        stamp = about.st_mtime_ns, about.st_size, about.st_ino
        if known and known[0] == stamp:
            return known
        try:
            result = self.store.read(name)
        except DataError as error:
            return stamp, str(error)
        return stamp, result or f"{path / RESULT} is absent; run the job again"

    def _unfinished_run(self, run_id: str) -> str:
        if self.store.is_claimed(run_id):
            return f"{run_id} is being written"
        return f"{run_id} was not finished; run the job again"


def version_note(result: Result) -> str:
    """A sentence if the installed version of the metric gives other numbers; otherwise empty."""
    row = result.rows[0]
    info = info_of(row.metric)
    if info is not None and info.version == row.metric_version:
        return ""
    today = "there is no such metric now" if info is None else f"today's is {info.version}"
    return (
        f"These numbers are of version {row.metric_version} of {row.metric}; {today}. Run the job "
        "again before you compare them with others."
    )


CHOSEN = ("metric", "attribute", "dataset", "captioner")  # runs can be filtered by these
KNOWN = (*CHOSEN, "find", "sort", "page")
_TONES = {"↑": "worse", "↓": "better"}


@dataclass(frozen=True)
class RunLine:
    result: Result  # the result of the run
    row: Row  # the row of the headline

    @property
    def number(self) -> NumberCell:
        return number_of(self.row, self.result)

    @property
    def part(self) -> str:
        """The name of the headline; empty for the usual headline."""
        return "" if self.row.part == SCORE else ARROWS.get(self.row.part, self.row.part)

    @property
    def settings(self) -> str:
        """The settings that differ between runs of the same metric, attribute and data set."""
        return label(self.result)

    @property
    def seeds(self) -> str:
        return seeds_text(self.row.seeds) if self.row.n_seeds else ""

    @property
    def day(self) -> str:
        return self.result.facts.started.replace("T", " ")[:16]

    @property
    def mark(self) -> str:
        """A sign after a captioner that is not known to be trained on this data set."""
        return "" if training_of(self.result) else " †"

    @cached_property
    def text(self) -> str:
        """All text that a search looks through, in lower case."""
        names = [getattr(self.row, name) for name in (*CHOSEN, "part")]
        return " ".join([*names, self.settings, self.result.run_id, self.day]).lower()


_KEYS: Mapping[str, Callable[[RunLine], Any]] = {
    "metric": lambda line: line.row.metric,
    "captioner": lambda line: line.row.captioner.lower(),
    "value": lambda line: line.row.value,
    "attribute": lambda line: line.row.attribute,
    "dataset": lambda line: line.row.dataset,
    "settings": lambda line: line.settings,
    "images": lambda line: float(line.row.n_images),
    "started": lambda line: line.result.facts.started,
}


def number_of(row: Row, result: Result) -> NumberCell:
    """A number in the form of tables; a headline also has an arrow."""
    arrow = pointing(row, result) if row.part in HEADLINES else ""
    tone = _TONES.get(arrow, "") if "lower is fairer" in result.facts.metric.direction else ""
    return NumberCell.of_row(row, arrow, tone)


def headline_rows(result: Result) -> list[Row]:
    """The headline rows of a run, or its first row if it has no headline."""
    return [row for row in result.rows if row.part in HEADLINES] or [result.rows[0]]


def shown_lines(lines: Sequence[RunLine], view: View) -> list[RunLine]:
    """The lines that a view shows, in the order of the view."""
    words = view["find"].lower().split()
    fitting = [
        line
        for line in lines
        if all(view[name] in ("", getattr(line.row, name)) for name in CHOSEN)
        and all(word in line.text for word in words)
    ]
    if view.key and view.key not in _KEYS:
        raise HTTPException(400, f"sort={view.key} is unknown; choose {', '.join(_KEYS)}")
    key = _KEYS[view.key or "metric"]
    present = [line for line in fitting if key(line) == key(line)]  # NaN does not equal itself
    absent = [line for line in fitting if key(line) != key(line)]
    return [*sorted(present, key=key, reverse=view.descending), *absent]
