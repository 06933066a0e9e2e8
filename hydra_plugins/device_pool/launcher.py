"""The launcher as Hydra finds it; what it needs to run jobs is imported when it does.

No postponed annotations here: Hydra runs this file before it is in ``sys.modules``, where
``dataclass`` would look them up.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class DevicePoolLauncher(Launcher):
    """Runs the jobs of a sweep side by side, each in a fresh process that sees one device.

    A device is held by a lock that the kernel drops when the job's process ends, however it ends.
    So a killed job leaves its device free and takes no other job with it, and several sweeps share
    the devices of a machine without knowing of each other.

    Args:
        devices: as the variable names them: indices or UUIDs, each once. All those that the
            variable names already (as it does in a Slurm job) if left out.
        variable: of the environment, which the driver reads; ``ROCR_VISIBLE_DEVICES`` for AMD.
        locks: folder of the lock files, which all sweeps that share the devices must have in
            common; one of the user's, on this machine, if left out.

    Raises:
        ValueError: if there is no device, or one is named twice.
    """

    def __init__(
        self,
        devices: Sequence[object] = (),
        variable: str = "CUDA_VISIBLE_DEVICES",
        locks: str | None = None,
    ) -> None:
        self.devices = device_names(devices, variable)
        self.variable = variable
        self.locks = locks
        self.common: tuple[HydraContext, DictConfig, TaskFunction] | None = None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before :meth:`launch`."""
        self.common = (hydra_context, config, task_function)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run jobs, as many at a time as devices are free; return once the last has ended.

        Args:
            job_overrides: one list of overrides a job.
            initial_job_idx: number of the first.

        Returns:
            What each job came to, in the same order. That of a job that died raises
            ``JobDiedError`` when it is read; the others have run all the same.
        """
        from hydra_plugins.device_pool._sweep import Sweep

        assert self.common is not None  # Hydra calls setup before launch
        sweep = Sweep(*self.common, self.devices, self.variable, self.locks)
        return sweep.run(job_overrides, initial_job_idx)


def device_names(devices: Sequence[object], variable: str) -> tuple[str, ...]:
    """The devices to share out, as text.

    Args:
        devices: as they were asked for.
        variable: of the environment, read if none were.

    Raises:
        ValueError: if there is none, or one is named twice.

    Example:
        >>> device_names([0, 1], "CUDA_VISIBLE_DEVICES")
        ('0', '1')
    """
    names = [str(device) for device in devices]
    names = names or [name for name in os.environ.get(variable, "").split(",") if name]
    if not names:
        raise ValueError(
            f"name the devices, such as hydra.launcher.devices=[0,1], or set {variable}"
        )
    if len(set(names)) < len(names) or any("/" in name for name in names):
        raise ValueError(
            f"hydra.launcher.devices={names}: name each device once, by number or UUID"
        )
    return tuple(names)


@dataclass
class DevicePoolConf:
    """``hydra/launcher=device_pool``; see :class:`DevicePoolLauncher`."""

    _target_: str = "hydra_plugins.device_pool.launcher.DevicePoolLauncher"
    devices: list[Any] = field(default_factory=list)
    variable: str = "CUDA_VISIBLE_DEVICES"
    locks: str | None = None


ConfigStore.instance().store(
    group="hydra/launcher", name="device_pool", node=DevicePoolConf, provider="device_pool"
)
