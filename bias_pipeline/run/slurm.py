"""Sweeps on other launchers: checks, submitting, waiting for all jobs, and their outcomes.

Hydra's launcher gives up at the first killed job. The others continue, and this module waits for
them and reads each outcome from the job's folder.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, ResourceError, UsageError, counted
from bias_pipeline.io import signals
from bias_pipeline.io.machine import LAUNCHERS

if TYPE_CHECKING:
    from omegaconf import DictConfig
    from submitit.slurm.slurm import SlurmInfoWatcher

log = logging.getLogger(__name__)

SLURM, LOCAL = "submitit_slurm", "submitit_local"
HERE = "basic"  # in this process
_NAMES = {
    "BasicLauncher": HERE,
    "LocalLauncher": LOCAL,
    "SlurmLauncher": SLURM,
}
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


@dataclass(frozen=True)
class Submitted:
    """A job that a launcher submitted."""

    id: str  # its id, such as `12_0`
    folder: Path  # its logs and its pickled call

    @property
    def log(self) -> Path:
        """The file of its stderr, also from before Python started."""
        return self.folder / f"{self.id}_0_log.err"

    @property
    def ended(self) -> bool:
        """Whether it wrote a result, good or bad."""
        return (self.folder / f"{self.id}_0_result.pkl").exists()

    def overrides(self) -> list[str]:
        """Its overrides; empty if they cannot be read."""
        from submitit.core.utils import DelayedSubmission

        try:
            handed_over = DelayedSubmission.load(self.folder / f"{self.id}_submitted.pkl")
            return [str(override) for override in handed_over.args[0]]
        except Exception:  # only a label for people
            return []


def launcher_of(config: DictConfig) -> str:
    """The name of a configuration's launcher."""
    return _NAMES[str(config.hydra.launcher._target_).rpartition(".")[2]]


def own_job() -> str | None:
    """The Slurm job that this process is part of, ``12_0`` in an array; None outside of Slurm."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    if array:
        return f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID')}"
    return os.environ.get("SLURM_JOB_ID")


def check_slurm(config: DictConfig) -> None:
    """Refuse what a launcher cannot do, before anything is written."""
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


@contextmanager
def waiting(launcher: str, folder: Path) -> Iterator[None]:
    """Wait for every job of a sweep, even if the launcher gives up at the first killed one."""
    if launcher == SLURM:
        _watch_queue()
    try:
        yield
    except RuntimeError as error:
        if not type(error).__module__.startswith("submitit."):
            raise
        jobs = submitted(folder)
        if not jobs:
            raise UsageError(f"{launcher}: the jobs were refused: {_last_line(error)}") from error
        _wait_for(jobs, launcher)


def submitted(folder: Path) -> list[Submitted]:
    """The submitted jobs of a sweep, in its order."""
    paths = folder.glob(".submitit/*/*_submitted.pkl")
    jobs = [Submitted(path.parent.name, path.parent) for path in paths]
    return sorted(jobs, key=_place)


def _place(job: Submitted) -> tuple[int, ...]:
    """The sort key of a job: its number in Slurm's array, else when it was submitted."""
    if "_" in job.id:
        return tuple(int(number) for number in job.id.split("_"))
    return (job.folder.stat().st_ctime_ns,)


def job_folders(folder: Path) -> list[Path]:
    """A folder for each job of a sweep, in its order; absent for jobs that never started."""
    started = {path.name for path in folder.glob("*") if (path / ".hydra").is_dir()}
    names = started | {str(number) for number in range(len(submitted(folder)))}
    return [folder / name for name in sorted(names, key=lambda name: (len(name), name))]


def last_words(job_folder: Path) -> dict[str, Any]:
    """The outcome of a job without one: it was killed, or never started."""
    where, overrides = f"its files are in {job_folder}", _own_overrides(job_folder)
    jobs = submitted(job_folder.parent)
    if job_folder.name.isdigit() and int(job_folder.name) < len(jobs):
        job = jobs[int(job_folder.name)]
        where, overrides = f"it was job {job.id}; its log is {job.log}", job.overrides()
    error = f"the job ended without an outcome; {where}"
    return {"status": "failed", "exit_code": 1, "error": error, "overrides": overrides}


def _own_overrides(job_folder: Path) -> list[str]:
    """The overrides that Hydra recorded when the job began, empty if it never did."""
    import yaml

    try:
        overrides = yaml.safe_load((job_folder / ".hydra" / "overrides.yaml").read_text())
    except (OSError, yaml.YAMLError):
        return []
    return [str(override) for override in overrides or []]


def ran_out_of_time(error: BaseException) -> str | None:
    """A sentence if submitit ended a job whose time was up for the last time, else None."""
    if type(error).__name__ != "UncompletedJobError":
        return None
    return (
        "its time was up; run the command again (trained seeds are cached), with more time "
        "(hydra.launcher.timeout_min) or more attempts (hydra.launcher.max_num_timeout)"
    )


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("sbatch:")), lines[-1] if lines else "")


def _wait_for(jobs: Sequence[Submitted], launcher: str) -> None:
    running = list(jobs)
    log.warning("a job was killed; waiting for the others")
    while running := [job for job in running if not _is_over(job, launcher)]:
        time.sleep(POLL_S)


def _is_over(job: Submitted, launcher: str) -> bool:
    if job.ended:
        return True
    if launcher == SLURM:
        from submitit import SlurmJob

        return bool(SlurmJob.watcher.is_done(job.id))
    try:
        return os.waitpid(int(job.id), os.WNOHANG)[0] != 0
    except ChildProcessError:  # waited for already
        return True


def _watch_queue() -> None:
    """Use the queue to see which jobs are over.

    submitit uses Slurm's accounting, which many small clusters lack: there it would wait for a
    killed job for ever.
    """
    from submitit import SlurmJob

    SlurmJob.watcher = _queue_watcher()


def _queue_watcher() -> SlurmInfoWatcher:
    from submitit.slurm.slurm import SlurmInfoWatcher

    class QueueWatcher(SlurmInfoWatcher):
        """The states of the user's jobs; a job that the queue no longer lists is over."""

        def update(self) -> None:
            """Query the queue; change nothing if it does not answer."""
            self._num_calls += 1
            self._last_status_check = time.time()
            states = queue_states()
            if states is None:
                return
            for job_id in self._registered - self._finished:
                state = states.get(job_id, "GONE")
                self._info_dict[job_id] = {"State": state}
                if state == "GONE" or state in ENDED:
                    self._finished.add(job_id)

        def is_done(self, job_id: str, mode: str = "standard") -> bool:
            """Whether the job will not run again."""
            self.get_info(job_id, mode=mode)
            return job_id in self._finished

    return QueueWatcher(delay_s=QUEUE_S)


def queue_states() -> dict[str, str] | None:
    """State of each of the user's jobs in Slurm's queue; None if it does not answer."""
    command = ["squeue", "--me", "--array", "--states=all", "--noheader", "--format=%i %T"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.info("squeue: %s", error)
        return None
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)


# Keys of Hydra's submitit launcher to options of sbatch.
_OPTIONS = {
    "name": "job-name={}",
    "partition": "partition={}",
    "account": "account={}",
    "qos": "qos={}",
    "constraint": "constraint={}",
    "exclude": "exclude={}",
    "comment": "comment={}",
    "gres": "gres={}",
    "timeout_min": "time={}",
    "mem_gb": "mem={}G",
    "mem_per_cpu": "mem-per-cpu={}",
    "cpus_per_task": "cpus-per-task={}",
    "gpus_per_node": "gpus-per-node={}",
    "signal_delay_s": "signal=USR2@{}",
}


MOST_TASKS = 1000  # Slurm's default for the largest array is 1001, counted from 0


def submit_arrays(
    folder: Path, launcher: Mapping[str, Any], jobs: Sequence[Sequence[str]]
) -> Iterator[str]:
    """Submit jobs, each the words of a command, as arrays; a line for each."""
    (folder / "jobs.txt").write_text("".join(f"{shlex.join(job)}\n" for job in jobs))
    for first in range(0, len(jobs), MOST_TASKS):
        size = min(MOST_TASKS, len(jobs) - first)
        script = folder / f"array_{first}.sh"
        script.write_text(_script(launcher, folder, first, size))
        number = _sbatch(script)
        yield f"submitted {counted(size, 'jobs')} as array {number}; logs {folder}/{number}_*.log"


def _script(launcher: Mapping[str, Any], folder: Path, first: int, size: int) -> str:
    """An sbatch script; it uses srun, so that Slurm's signal reaches Python too."""
    options = [
        text.format(launcher[key])
        for key, text in _OPTIONS.items()
        if launcher.get(key) is not None
    ]
    more = launcher.get("additional_parameters") or {}
    options += [f"{key}={value}" for key, value in more.items()]
    options += [
        f"array=0-{size - 1}%{launcher.get('array_parallelism') or size}",
        f"output={folder}/%A_%a.log",
        "open-mode=append",
        "requeue",
        "ntasks=1",
    ]
    retries = int(launcher.get("max_num_timeout") or 0)
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{_quoted(option)}" for option in options),
            f"cd {shlex.quote(str(Path.cwd()))} || exit 5",
            f"line=$((SLURM_ARRAY_TASK_ID + {first + 1}))",
            f'eval "set -- $(sed -n "${{line}}p" {shlex.quote(str(folder / "jobs.txt"))})"',
            'export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"',  # srun no longer inherits it
            f'srun {shlex.quote(sys.executable)} -m bias_pipeline "$@"',
            "code=$?",
            f"if [ $code -eq {signals.REQUEUE} ] && "
            f'[ "${{SLURM_RESTART_COUNT:-0}}" -lt {retries} ]; then',
            '  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"',
            "fi",
            "exit $code",
            "",
        ]
    )


def _quoted(option: str) -> str:
    """An option of sbatch, its value quoted for the shell."""
    key, equals, value = option.partition("=")
    return f"{key}={shlex.quote(value)}" if equals else key


def _sbatch(script: Path) -> str:
    """Submit a script; returns the number of its array."""
    command = ["sbatch", "--parsable", str(script)]
    done = subprocess.run(  # noqa: S603 - a fixed command
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "SLURM_EXPORT_ENV": "ALL"},
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UsageError(f"sbatch refused {script}: {reason}")
    number = done.stdout.strip().partition(";")[0]
    if not number.isdigit():
        raise DataError(f"sbatch printed {done.stdout!r}, which is no job number")
    return number
