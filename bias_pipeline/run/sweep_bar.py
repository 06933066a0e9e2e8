"""Estimates how long the cells of a sweep take, before they start and while they run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.io.progress import Bar
from bias_pipeline.metrics import catalogue
from bias_pipeline.run.job import OUTCOME, outcome_in
from bias_pipeline.run.worker_processes import WORTH_S

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.run.compose import Cell, Sweep

_REPORT_S = 1.0  # processor seconds of an audit's report


def costs_of_sweep(sweep: Sweep, corpus: Corpus | None) -> list[tuple[float, str]]:
    """The expected processor seconds of each job, and its kind (:func:`catalogue.kind`).

    If ``corpus`` is given, every cell is assumed to have its size. Some costs of a cell do not grow
    with its captions, so cells of 300 captions say little about larger cells.
    """
    first, costs = sweep.first_cell, []
    before: dict[str, str] = {}
    for words in sweep.jobs:
        job = dict(word.split("=", 1) for word in words if "=" in word)
        metric = job.get("metric", first.metric.name)
        alignment = job.get("alignment", first.choice("alignment"))
        info = catalogue.info_of(metric)
        encoder = job.get("encoder", first.choices.get("encoder", ""))
        kind = catalogue.kind(metric, encoder if info is None or info.family == "attack" else "")
        if corpus is None:
            seconds = catalogue.weight(metric, len(first.seeds))
        else:
            seconds = catalogue.seconds_of(
                metric,
                corpus,
                len(first.seeds),
                matched=alignment.startswith("matched"),
                trained=_share_attackers(before, job),
            )
        costs.append((seconds, kind))
        before = job
    return costs


def _share_attackers(before: dict[str, str], job: dict[str, str]) -> bool:
    """Whether two jobs share attackers; the jobs may differ only in their metric."""
    names = [one.get("metric", "") for one in (before, job)]
    if before | {"metric": ""} != job | {"metric": ""} or not all(map(catalogue.info_of, names)):
        return False
    first, second = (catalogue.attackers(catalogue.settings_of(name)) for name in names)
    return bool(first) and first == second


def costs_of_cells(cells: Sequence[Cell]) -> list[tuple[float, str]]:
    """The expected processor seconds and the kind of each cell; shared attackers count once."""
    trained, costs = set[str](), []
    for cell in cells:
        kind = catalogue.kind(cell.metric.name, cell.choice("encoder"))
        try:
            seconds = cell.expected_seconds(trained=cell.attackers in trained)
        except BiasPipelineError:
            seconds = 0.0  # the cell's job will say what is wrong
        costs.append((seconds, kind))
        trained |= {cell.attackers} - {""}
    return costs


def announced_seconds(expected: float, processes: int, slowdown: float) -> float:
    """How long cells and their report take if the cells need ``expected`` processor seconds.

    Long work is shared among processes. ``slowdown`` says how many seconds pass while a process
    computes for one second. The slowdown is above 1 on a busy machine.

    Example:
        >>> announced_seconds(60.0, 2, 1.5), announced_seconds(5.0, 2, 1.0)
        (46.5, 6.0)
    """
    if expected >= WORTH_S:
        expected /= processes
    return slowdown * (_REPORT_S + expected)


class SweepBar(Bar):
    """The progress bar of a sweep.

    A cell counts in proportion to its expected seconds. The speed of encoders and networks depends
    on the machine, so the time left is shown only when a cell of every kind has run or failed. If a
    cell failed, the other cells of its kind are expected to fail too.
    """

    def __init__(self, folder: Path, costs: Sequence[tuple[float, str]]) -> None:
        super().__init__("job")
        self.folder = folder
        self.total = len(costs)
        self.costs = costs
        self._ended: set[int] = set()
        self._last_end = 0.0  # of a job, in seconds
        self._spent = defaultdict[str, float](float)  # seconds in cells that ran, by kind
        self._expected = defaultdict[str, float](float)  # seconds expected of them, by kind
        self._refused: set[str] = set()  # kinds of cells that failed

    def update(self) -> None:
        """Record which jobs have ended, and how long they took if they were run."""
        ended = {int(path.parent.name): path for path in self.folder.glob(f"*/{OUTCOME}")}
        for number in sorted(ended.keys() - self._ended):
            path, (expected, kind) = ended[number], self.costs[number]
            outcome = outcome_in(path.parent) or {}
            if outcome["status"] == "done":
                self._spent[kind] += outcome["seconds"]
                self._expected[kind] += expected
            elif outcome["status"] == "failed":
                self._refused.add(kind)
            self._last_end = max(self._last_end, self._seconds_at(path))
        self._ended |= ended.keys()
        self.done = len(self._ended)

    def seconds_left(self) -> float | None:
        """Expected seconds; a process that works on a cell is expected to finish the cell."""
        known = self._refused | {kind for kind, seconds in self._expected.items() if seconds}
        left = [number for number in range(self.total) if number not in self._ended]
        if any(self.costs[number][1] not in known for number in left):
            return None
        begun = self._begin_times(left)
        seconds = [
            max(0.0, self._pace(kind) * expected - (self.elapsed_s - begun[number]))
            if number in begun
            else self._pace(kind) * expected
            for number in left
            for expected, kind in [self.costs[number]]
        ]
        together = sum(seconds) / max(1, len(begun))
        return max([together, *seconds]) or None

    def _pace(self, kind: str) -> float:
        """The seconds of a kind of cells for each expected second; 0 if such cells fail."""
        expected = self._expected[kind]
        return self._spent[kind] / expected if expected else 0.0

    def _begin_times(self, left: Sequence[int]) -> dict[int, float]:
        """The cells that processes work on, by number, and the time when each cell began.

        A cell's folder is made when the cell begins. If no cell is running, the first cell without
        an outcome counts as begun when the last cell ended.
        """
        folders = {number: self.folder / str(number) for number in left}
        begun = {n: self._seconds_at(path) for n, path in folders.items() if path.exists()}
        return begun or dict.fromkeys(left[:1], self._last_end)

    def _seconds_at(self, path: Path) -> float:
        """When a file or folder last changed, in seconds since the bar was opened."""
        return max(0.0, self.elapsed_s - (time.time() - path.stat().st_mtime))

    def place(self) -> str:
        return f"{self.label} {min(self.done + 1, self.total)} of {self.total}"
