"""Checks that the devices exist on which a command's networks would be trained."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.config.compose import CellConfig, cell_of
from bias_pipeline.config.overrides import jobs_of
from bias_pipeline.errors import BiasPipelineError, ResourceError
from bias_pipeline.learning.loop import require_devices
from bias_pipeline.results.store import ResultStore
from bias_pipeline.sweeps import slurm

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from bias_pipeline.config.hydra_composer import Loader

_CHOOSE = ("trainer", "experiment")  # keys that can choose a device other than the CPU


def check_devices(overrides: Sequence[str], loader: Loader, config: DictConfig) -> None:
    """Check before any work that devices exist; finished cells need none.

    Args:
        overrides: of the job or the sweep.
        loader: composes the jobs.
        config: of the first job.

    Raises:
        ResourceError: if a cell would need a device that is absent. Slurm's nodes are not checked.
    """
    chosen = any(word.lstrip("+~").startswith(_CHOOSE) for word in overrides)
    if not chosen or slurm.launcher_of(config) == slurm.SLURM:
        return
    store = ResultStore(Path(config.paths.outputs))
    for job in jobs_of(overrides):
        _check_cell(cell_of(loader.job(job)), store)


def _check_cell(cell: CellConfig, store: ResultStore) -> None:
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
