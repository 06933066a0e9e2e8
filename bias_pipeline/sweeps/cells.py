"""Runs cells that are composed already, as ``audit`` does: without Hydra, in one table."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bias_pipeline.analysis.name_collisions import SWEPT
from bias_pipeline.config.compose import CellConfig, new_invocation
from bias_pipeline.io.progress import showing
from bias_pipeline.sweeps import slurm
from bias_pipeline.sweeps.job import SweepBar, make_folder, run_recorded
from bias_pipeline.sweeps.outcomes import SweepOutcome, conclude
from bias_pipeline.sweeps.worker_processes import helped

JOBS = ".hydra_jobs"  # the folder of all jobs in that of results, as conf/config.yaml names it


def run_cells(cells: Sequence[CellConfig], *, tables_by: str = "") -> SweepOutcome:
    """Run cells in this process and its helpers, and print their table; skip what data refuse.

    Args:
        cells: of one folder of results; the first says how many processes may run.
        tables_by: a field of rows: a table for each of its values.

    Raises:
        BiasPipelineError: if the folder cannot be written.
        Stopped: on a request to stop.
    """
    first = cells[0]
    outputs = Path(first.tree["paths"]["outputs"])
    folder = outputs / JOBS / new_invocation()
    make_folder(folder)
    os.environ.pop(SWEPT, None)  # every cell keeps its captioner's name
    started = time.monotonic()
    named = [(cell.metric.name, cell.choice("encoder")) for cell in cells]
    networks = any(cell.runs_networks for cell in cells)
    processes = 1 if networks else first.tree["processes"]
    folders = [folder / str(number) for number in range(len(cells))]
    where = {"launcher": slurm.HERE, "id": slurm.own_job()}
    with showing(SweepBar(folder, named, len(first.seeds))), helped(cells, processes, folder):
        for number, cell in enumerate(cells):
            make_folder(folders[number])
            run_recorded(partial(cells.__getitem__, number), folders[number], cell.overrides, where)
    return conclude(folders, outputs, time.monotonic() - started, lenient=True, tables_by=tables_by)
