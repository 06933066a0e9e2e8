"""Runs helper processes, which take cells of a local sweep from its end, and checks devices.

The sweep's process goes through all cells in order, as it would without helpers, and finds the
later cells finished. The sweep's process also runs every cell that a helper cannot run, so results
never depend on helpers. The devices that networks will use are checked before any work.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from itertools import groupby
from multiprocessing.context import SpawnProcess
from pathlib import Path

from bias_pipeline.attack.lightning_loop import context, prepare_worker, require_devices
from bias_pipeline.errors import BiasPipelineError, ResourceError
from bias_pipeline.io.machine import free_memory, n_cores, own_memory, return_freed_memory
from bias_pipeline.io.terminal import redacted_data
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import slurm
from bias_pipeline.run.compose import Cell, Sweep
from bias_pipeline.run.corpora import pickled_corpora, take_over
from bias_pipeline.run.job import OUTCOME, VISIBLE, done_in, load_or_run, outcome_of, record
from bias_pipeline.run.overrides import as_hydra_writes

log = logging.getLogger(__name__)

WORTH_S = 10.0  # no helper starts for less work, since starting takes two seconds
COMPUTED_S = 1.0  # a cell that takes longer is not cached: a cached cell takes a third of it
POLL_S = 0.25
LAST_WORD_S = 5.0  # time for a helper to end once all cells are done


@contextmanager
def worker_pool(
    cells: Sequence[Cell],
    processes: int | str,
    folder: Path,
    devices: Sequence[str] = (),
) -> Iterator[None]:
    """Start helper processes when they save time; stop them after the block."""
    helpers = _Helpers(cells, processes, folder, devices)
    over = threading.Event()
    watch = threading.Thread(target=helpers.watch, args=(over,), daemon=True)
    watch.start()
    try:
        yield
        over.set()
        watch.join()
        helpers.wait(LAST_WORD_S)
    finally:
        over.set()
        watch.join()
        helpers.kill()


class _Helpers:
    def __init__(
        self,
        cells: Sequence[Cell],
        processes: int | str,
        folder: Path,
        devices: Sequence[str],
    ) -> None:
        self.cells, self.folder = cells, folder
        self.processes, self.devices = processes, devices
        self.started: list[SpawnProcess] = []

    def watch(self, over: threading.Event) -> None:
        """Start helpers when they save time; returns when the sweep is over."""
        n_jobs, pace = len(self.cells), _Pace(self.folder)
        while not over.wait(POLL_S):
            for helper in self.started:
                helper.is_alive()  # a killed helper must not stay a zombie that holds a claim
            if self.started:
                continue
            seconds, n_ended = pace.update()
            if self.devices or seconds * (n_jobs - n_ended) >= WORTH_S:
                self.start(min(n_wanted(self.processes), n_jobs - n_ended) - 1)

    def start(self, number: int) -> None:
        corpora = [pickled_corpora()] if number > 0 else []
        for rank in range(1, number + 1):
            device = self.devices[rank] if self.devices else None
            helper = context().Process(
                target=_help, args=(self.cells, self.folder, device, corpora)
            )
            helper.start()
            self.started.append(helper)

    def wait(self, seconds: float) -> None:
        """Wait until the helpers have ended, for at most ``seconds`` per helper."""
        for helper in self.started:
            helper.join(seconds)

    def kill(self) -> None:
        for helper in self.started:
            helper.kill()
            helper.join()


class _Pace:
    """The time that a cell of a sweep takes, measured from the folders of the sweep's jobs.

    Cached cells do not count, because a sweep of cached cells needs no helper.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.began = self.last_end = 0.0
        self.n_ended = 0
        self.computed = False

    def update(self) -> tuple[float, int]:
        """The seconds that a cell takes (0 while unknown), and the number of ended cells."""
        now = time.monotonic()
        folders = [path for path in self.folder.glob("*") if path.name.isdecimal()]
        if not folders:
            return 0.0, 0
        self.began = self.began or now
        ended = [path for path in folders if (path / OUTCOME).exists()]
        if len(ended) != self.n_ended or not self.last_end:
            self.n_ended, self.last_end = len(ended), now
        self.computed = self.computed or any(map(done_in, ended))
        if self.computed:
            return (now - self.began) / max(1, self.n_ended), self.n_ended
        going = now - self.last_end
        return (going if going >= COMPUTED_S else 0.0), self.n_ended


def n_wanted(processes: int | str) -> int:
    """The requested number of processes, or one per core as far as memory allows."""
    if isinstance(processes, int):
        return processes
    room = free_memory()
    return n_cores() if room is None else min(n_cores(), 1 + room // own_memory())


def _help(cells: Sequence[Cell], folder: Path, device: str | None, corpora: list[bytes]) -> None:
    """Run a helper; it empties ``corpora``, whose bytes would otherwise stay in memory."""
    prepare_worker()
    take_over(corpora.pop())
    if device is not None:
        os.environ[VISIBLE] = device
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        _take_cells(cells, folder)


def _take_cells(cells: Sequence[Cell], folder: Path) -> None:
    """Run cells from the last to the first, but cells with shared attackers in their order.

    A process that begins cells with shared attackers runs all these cells, because it has the
    attackers in memory.
    """
    from bias_pipeline.metrics.attack.attacked_captions import forget_attackers

    for _, together in groupby(
        _cells_left(cells, folder), lambda pair: pair[1].attackers or pair[0]
    ):
        pairs = [*together][::-1]
        if not any(_is_begun(cell) for _, cell in pairs):
            for number, cell in pairs:
                _take_cell(cell, folder / str(number))
        forget_attackers()


def _cells_left(cells: Sequence[Cell], folder: Path) -> Iterator[tuple[int, Cell]]:
    """The number and cell of each job without an outcome, from the last to the first."""
    for number in reversed(range(len(cells))):
        if not (folder / str(number) / OUTCOME).exists():
            try:
                cell = cells[number]
            except Exception:
                log.debug("left to the sweep's own process", exc_info=True)
                continue
            yield number, cell


def _is_begun(cell: Cell) -> bool:
    """Whether another process is working on a cell; False if the cell cannot be read."""
    try:
        return ResultStore(cell.tree["paths"]["outputs"]).is_claimed(cell.run_id(cell.corpus()))
    except Exception:
        log.debug("left to the sweep's own process", exc_info=True)
        return False


def _take_cell(cell: Cell, job_folder: Path) -> None:
    """Run a cell, unless another process runs it."""
    if (job_folder / OUTCOME).exists() or _is_begun(cell):
        return
    job = {"launcher": slurm.HERE, "device": os.environ.get(VISIBLE)}
    started = time.monotonic()
    job_folder.mkdir(parents=True, exist_ok=True)  # so that the bar sees that the cell has begun
    overrides = [as_hydra_writes(override) for override in cell.overrides]
    try:
        result, cached = load_or_run(cell, cell.corpus(), overrides=overrides, job=job)
    except Exception:
        log.debug("left to the sweep's own process", exc_info=True)
        return
    if not cached:
        outcome = outcome_of(result, time.monotonic() - started, cached=False)
        record(job_folder, {"overrides": redacted_data(overrides), **outcome})
    return_freed_memory()


_CHOOSE = ("trainer", "experiment")  # keys that can choose a device other than the CPU


def check_devices(sweep: Sweep) -> None:
    """Refuse devices that do not exist before any work, unless all cells on them are finished."""
    chosen = any(word.lstrip("+~").startswith(_CHOOSE) for word in sweep.overrides)
    if not chosen or slurm.launcher_of(sweep.config) == slurm.SLURM:
        return
    store = ResultStore(Path(sweep.config.paths.outputs))
    for cell in sweep:
        _check_cell(cell, store)


def _check_cell(cell: Cell, store: ResultStore) -> None:
    trainer = cell.tree.get("trainer") if "trainer" in cell.used else None
    if not trainer or trainer.get("accelerator") == "cpu":
        return
    try:
        require_devices(trainer)
    except ResourceError:
        with suppress(BiasPipelineError):
            if store.load(cell.run_id(cell.corpus())) is not None:
                return
        raise
