"""Progress of a sweep, from the outcomes in its jobs' folders, wherever they run."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.catalogue import costs
from bias_pipeline.config.overrides import jobs_of
from bias_pipeline.io.progress import Bar
from bias_pipeline.sweeps.job import OUTCOME


def sweep_bar(folder: Path, overrides: Sequence[str], seeds: int | Sequence[int]) -> SweepBar:
    """The bar of a sweep.

    Args:
        folder: contains the folders of its jobs.
        overrides: its overrides.
        seeds: of its first job, a number of them or a list.
    """
    jobs = [dict(word.split("=", 1) for word in job if "=" in word) for job in jobs_of(overrides)]
    cells = [(job.get("metric", ""), job.get("encoder", "")) for job in jobs]
    return SweepBar(folder, cells, seeds if isinstance(seeds, int) else len(seeds))


class SweepBar(Bar):
    """The progress bar of a sweep.

    Slower metrics count for more of the time left. The relative speed of encoders depends on the
    machine, so the time left is shown once a cell of every encoder has run.

    Args:
        folder: of the sweep; each job has a folder in it, named by its number.
        cells: the metric and the encoder of each.
        seeds: of a cell.
    """

    def __init__(self, folder: Path, cells: Sequence[tuple[str, str]], seeds: int) -> None:
        super().__init__("cell")
        self.folder = folder
        self.total = len(cells)
        self.weights = [costs.weight(metric, seeds) for metric, _ in cells]
        self.encoders = [encoder for _, encoder in cells]
        self._ended: set[int] = set()
        self._heard = 0.0  # when the last job ended, in seconds
        self._spent = defaultdict[str, float](float)  # seconds, by encoder
        self._run = defaultdict[str, float](float)  # weights of the cells that ran, by encoder

    def look(self) -> None:
        """Record the jobs that have ended, and how long those that ran took."""
        ended = {int(path.parent.name): path for path in self.folder.glob(f"*/{OUTCOME}")}
        times = {number: self._when(ended[number]) for number in ended.keys() - self._ended}
        for number in sorted(times, key=lambda number: (times[number], number)):
            if json.loads(ended[number].read_text())["status"] == "done":
                encoder = self.encoders[number]
                self._spent[encoder] += times[number] - self._heard
                self._run[encoder] += self.weights[number]
            self._heard = times[number]
        self._ended |= ended.keys()
        self.done = len(self._ended)

    def _when(self, path: Path) -> float:
        """When a job ended, in seconds; not before the last recorded one."""
        return max(self._heard, self.elapsed - (time.time() - path.stat().st_mtime))

    def seconds_left(self) -> float | None:
        """See :class:`Bar`; cached and failed cells do not count.

        The time since the last job ended belongs to the time left.
        """
        left = defaultdict[str, float](float)
        for number, (weight, encoder) in enumerate(zip(self.weights, self.encoders, strict=True)):
            if number not in self._ended:
                left[encoder] += weight
        if any(not self._run[encoder] for encoder in left):
            return None
        expected = sum(
            self._spent[name] / self._run[name] * weight for name, weight in left.items()
        )
        expected -= self.elapsed - self._heard
        return expected if expected > 0 else None

    def place(self) -> str:
        """The first cell that has not ended."""
        return f"{self.label} {min(self.done + 1, self.total)} of {self.total}"
