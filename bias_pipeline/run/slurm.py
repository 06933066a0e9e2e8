"""Checks and submits jobs in other processes, on Slurm or on this machine, and waits for them."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bias_pipeline.declared import TARGET
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.io.machine import LAUNCHERS
from bias_pipeline.run.hydra_allowlist import Queue

if TYPE_CHECKING:
    from omegaconf import DictConfig
    from submitit import Job

log = logging.getLogger(__name__)

SLURM, LOCAL = "submitit_slurm", "submitit_local"
HERE = "basic"  # in this process
_NAMES = {
    "BasicLauncher": HERE,
    "LocalLauncher": LOCAL,
    "SlurmLauncher": SLURM,
}
MOST_TASKS = 1000  # Slurm's default for the largest array is 1001, counted from 0
POLL_S = 1.0
QUEUE_S = 30  # the longest time between two queries of the queue

# The states of a job that will not run again, in squeue.
ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "TIMEOUT",
)


def launcher_of(config: DictConfig) -> str:
    return _NAMES[str(config.hydra.launcher._target_).rpartition(".")[2]]


def own_job() -> str | None:
    """The id of this process's Slurm job (``12_0`` in an array), or None outside of Slurm."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    if array:
        return f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID')}"
    return os.environ.get("SLURM_JOB_ID")


def check_slurm(config: DictConfig) -> None:
    """Refuse settings that the launcher does not support, before anything is written."""
    launcher = launcher_of(config)
    if launcher in LAUNCHERS:
        LAUNCHERS[launcher].require()
    if launcher not in (SLURM, LOCAL):
        return
    if config.devices:
        raise UsageError(
            f"devices names GPUs for jobs that run on this machine; with "
            f"hydra/launcher={launcher} ask for them with hydra.launcher.gpus_per_node"
        )
    tasks = int(config.hydra.launcher.tasks_per_node) * int(config.hydra.launcher.nodes)
    if tasks != 1:
        raise UsageError(
            "hydra.launcher.tasks_per_node and nodes must be 1: each task would run the same job; "
            "trainer=ddp starts its processes itself, give it hydra.launcher.cpus_per_task or "
            "gpus_per_node"
        )
    if launcher == SLURM and shutil.which("sbatch") is None:
        raise ResourceError(
            "hydra/launcher=submitit_slurm: sbatch is absent, so there is no Slurm here; run it on "
            "a login node, or here, without a launcher"
        )


class Requeued(ABC):
    """A job that runs again with the same arguments if Slurm interrupts and requeues it."""

    @abstractmethod
    def __call__(self, argument: Any) -> None:
        """Run the job."""

    def checkpoint(self, *arguments: Any) -> object:
        """The submission that Slurm puts into its queue after an interruption."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *arguments)


def submit(job: Requeued, arguments: Sequence[object], config: DictConfig) -> list[Job[None]]:
    """Submit a job for each argument with submitit and the configured launcher."""
    import submitit
    from omegaconf import OmegaConf
    from submitit.core.utils import FailedJobError

    launcher = launcher_of(config)
    given: Any = OmegaConf.to_container(config.hydra.launcher, resolve=True)
    folder, retries = given.pop("submitit_folder"), given.pop("max_num_timeout", 0)
    slurms = {"slurm_max_num_timeout": retries} if launcher == SLURM else {}
    executor = submitit.AutoExecutor(folder, launcher.removeprefix("submitit_"), **slurms)
    of_all = Queue.__annotations__
    executor.update_parameters(
        **{k if k in of_all else f"slurm_{k}": v for k, v in given.items() if k != TARGET}
    )
    submitted: list[Job[None]] = []
    try:
        for first in range(0, len(arguments), MOST_TASKS):
            submitted += executor.map_array(job, arguments[first : first + MOST_TASKS])
    except FailedJobError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith("sbatch:")]
        reason = (reasons or lines[-1:] or ["no reason given"])[0]
        raise UsageError(f"{launcher}: the jobs were refused: {reason}") from error
    return submitted


def wait_for(jobs: Sequence[Job[None]], launcher: str) -> None:
    """Wait until each job has ended, or will not run again.

    Slurm's queue shows which jobs are over. submitit asks Slurm's accounting, which many small
    clusters lack; without it, submitit would wait for a killed job for ever.
    """
    running, queried = list(jobs), time.monotonic()
    while running := [job for job in running if not _has_ended(job, launcher)]:
        if launcher == SLURM and time.monotonic() - queried > QUEUE_S:
            queried, states = time.monotonic(), queue_states()
            running = [job for job in running if not is_over(job.job_id, states)]
        time.sleep(POLL_S)


def _has_ended(job: Job[None], launcher: str) -> bool:
    """Whether a job has ended: a local process is over, or a Slurm job has written a result."""
    return job.done() if launcher == LOCAL else job.paths.result_pickle.exists()


def is_over(job_id: str, states: Mapping[str, str] | None) -> bool:
    """Whether a job will not run again, since the queue lists it as ended or no longer lists it."""
    return states is not None and states.get(job_id, ENDED[0]) in ENDED


def ran_out_of_time(error: BaseException) -> str | None:
    """A message if submitit gave up a job that had no time and no attempts left, else None."""
    if type(error).__name__ != "UncompletedJobError":
        return None
    return (
        "its time was up; run the command again (trained seeds are cached), with more time "
        "(hydra.launcher.timeout_min) or more attempts (hydra.launcher.max_num_timeout)"
    )


def queue_states() -> dict[str, str] | None:
    """The state of each of the user's jobs in Slurm's queue; None if the queue does not answer."""
    command = ["squeue", "--me", "--array", "--states=all", "--noheader", "--format=%i %T"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.info("squeue: %s", error)
        return None
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)
