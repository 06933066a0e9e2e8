"""The sweep's own process: hands out devices, starts jobs, waits for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cloudpickle
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from hydra_plugins.device_pool import _job
from hydra_plugins.device_pool._locks import Device, folder_of_locks, take

POLL_S = 0.05
FOLDER = ".device_pool"  # in the sweep's folder; of a job that died its part stays


class JobDiedError(RuntimeError):
    """A job's process ended without an answer: it was killed, or it crashed."""


@dataclass(frozen=True)
class Running:
    """A job whose process runs.

    Attributes:
        place: its place among the jobs.
        folder: what it was given and where it answers.
        device: its own.
        process: its own.
    """

    place: int
    folder: Path
    device: Device
    process: subprocess.Popen[bytes]


@dataclass(frozen=True)
class Sweep:
    """What all jobs of a sweep have in common.

    Attributes:
        context: Hydra's, which composes jobs.
        config: of the sweep.
        task_function: the application.
        devices: see :class:`~hydra_plugins.device_pool.launcher.DevicePoolLauncher`.
        variable: see there.
        locks: see there.
    """

    context: HydraContext
    config: DictConfig
    task_function: TaskFunction
    devices: Sequence[str]
    variable: str
    locks: str | None

    def run(self, job_overrides: Sequence[Sequence[str]], first: int) -> list[JobReturn]:
        """See :meth:`~hydra_plugins.device_pool.launcher.DevicePoolLauncher.launch`."""
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        locks = folder_of_locks(self.locks)
        waiting = deque(range(len(job_overrides)))
        returns = [JobReturn(overrides=list(overrides)) for overrides in job_overrides]
        running: list[Running] = []
        try:
            while waiting or running:
                while waiting and (device := take(self.devices, locks)) is not None:
                    place = waiting.popleft()
                    folder = self._hand_over(job_overrides[place], first + place)
                    running.append(self._start(place, folder, device))
                time.sleep(POLL_S)
                for job in [job for job in running if job.process.poll() is not None]:
                    running.remove(job)
                    job.device.release()
                    returns[job.place] = _answer(job, returns[job.place])
        finally:
            for job in running:  # the sweep is being ended: so are its jobs
                job.process.terminate()
            for job in running:
                job.process.wait()
                job.device.release()
        return returns

    def _hand_over(self, overrides: Sequence[str], number: int) -> Path:
        """Write down what a job needs to run in a process of its own."""
        config = self.context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = f"{config.hydra.job.name}_{number}"
            config.hydra.job.num = number
        folder = Path(str(self.config.hydra.sweep.dir), FOLDER, str(number))
        folder.mkdir(parents=True, exist_ok=True)
        order = (self.context, config, self.task_function, Singleton.get_state())
        (folder / _job.ORDER).write_bytes(cloudpickle.dumps(order))
        return folder

    def _start(self, place: int, folder: Path, device: Device) -> Running:
        environment = {
            **os.environ,
            self.variable: device.name,
            "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
        }
        # The job holds the lock too: it stays when this process is killed and the job goes on.
        process = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-m", _job.__name__, str(folder.resolve())],
            env=environment,
            pass_fds=[device.handle],
        )
        return Running(place, folder, device, process)


def _answer(job: Running, unknown: JobReturn) -> JobReturn:
    path = job.folder / _job.ANSWER
    if path.is_file():
        found = cloudpickle.loads(path.read_bytes())
        shutil.rmtree(job.folder)
        assert isinstance(found, JobReturn)
        return found
    code = job.process.returncode
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    unknown.status = JobStatus.FAILED
    unknown.return_value = JobDiedError(
        f"job {job.folder.name} on device {job.device.name} {how} and left no answer"
    )
    return unknown
