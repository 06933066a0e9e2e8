"""How far a sweep is, from what its jobs have left in their folders, wherever they run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.catalogue import costs
from bias_pipeline.config.overrides import jobs_of
from bias_pipeline.io.progress import Bar
from bias_pipeline.sweeps.job import OUTCOME


def sweep_bar(folder: Path, overrides: Sequence[str], seeds: int | Sequence[int]) -> SweepBar:
    """The bar of a sweep.

    Args:
        folder: where its jobs have theirs.
        overrides: what it was asked for.
        seeds: of its first job, a number of them or a list.
    """
    jobs = [dict(word.split("=", 1) for word in job if "=" in word) for job in jobs_of(overrides)]
    metrics = [job.get("metric", "") for job in jobs]
    return SweepBar(folder, metrics, seeds if isinstance(seeds, int) else len(seeds))


class SweepBar(Bar):
    """The cells of a sweep; dear metrics count for more of the time that is left.

    Args:
        folder: of the sweep, in which each job has a folder named by its number.
        metrics: of each cell.
        seeds: of a cell.
    """

    def __init__(self, folder: Path, metrics: Sequence[str], seeds: int) -> None:
        super().__init__("cell")
        self.folder = folder
        self.total = len(metrics)
        self.weights = [costs.weight(metric, seeds) for metric in metrics]
        self._run: dict[int, bool] = {}
        self._heard = 0.0  # seconds until the last job that has ended did

    def look(self) -> None:
        """Count the jobs that have ended, and note which of them were run."""
        for path in self.folder.glob(f"*/{OUTCOME}"):
            number = int(path.parent.name)
            if number not in self._run:
                self._run[number] = json.loads(path.read_text())["status"] != "cached"
                self._heard = self.elapsed
        self.done = len(self._run)

    def seconds_left(self) -> float | None:
        """See :class:`Bar`; cells that were there already say nothing of the time.

        What goes on since the last one ended is part of what is left, not of what was done.
        """
        run = sum(self.weights[number] for number, own in self._run.items() if own)
        left = sum(own for number, own in enumerate(self.weights) if number not in self._run)
        if not run:
            return None
        expected = self._heard / run * left - (self.elapsed - self._heard)
        return expected if expected > 0 else None

    def place(self) -> str:
        """The first cell that has not ended."""
        return f"{self.label} {min(self.done + 1, self.total)} of {self.total}"
