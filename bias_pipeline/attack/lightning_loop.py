"""Runs Lightning's loop and trainer, and starts the processes that train.

Either each process trains its own attacker, or all processes train one attacker together, with one
process for each device of this machine. Processes are started once and kept, since importing
PyTorch takes seconds. Lightning is told that the processes already run, as under torchrun, so it
starts none. By default Lightning would run the whole program again in each process.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import active_children, get_context, resource_tracker
from multiprocessing.context import SpawnContext
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from bias_pipeline.errors import ResourceError
from bias_pipeline.io import signals
from bias_pipeline.io.machine import disable_tf32, has_bf16
from bias_pipeline.io.paths import find_included_packages
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import pytorch_lightning as pl
    import torch
    from pytorch_lightning import Callback

    from bias_pipeline.attack.checkpoints import Checkpoint, Ordered


@dataclass(frozen=True)
class CheckpointSettings:
    """Settings of checkpoints."""

    folder: str  # of all checkpoints
    version: int  # of the network; checkpoints of other versions are ignored
    minutes: float  # between two checkpoints; a shorter training writes none

    def checkpoint(self, name: str, batches: Ordered) -> Checkpoint:
        from bias_pipeline.attack.checkpoints import Checkpoint

        return Checkpoint(Path(self.folder) / f"{name}.ckpt", batches, 60 * self.minutes)


def run_training(
    module: pl.LightningModule,
    batches: Any,
    settings: Mapping[str, Any],
    callbacks: Sequence[Callback] = (),
) -> torch.device:
    """Train with Lightning's loop, without its warnings about data loaders."""
    from bias_pipeline.attack.checkpoints import Checkpoint

    ours = next((callback for callback in callbacks if isinstance(callback, Checkpoint)), None)
    begun = ours.resumable(module) if ours else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Without checkpoints of ours Lightning would write its own into the current folder.
            extra = {"enable_checkpointing": True} if ours else {}
            trainer = _trainer({**settings, **extra, "callbacks": list(callbacks)})
            trainer.fit(module, batches, ckpt_path=begun, weights_only=True)
            return trainer.strategy.root_device
        except SystemExit as stop:
            if type(stop) is SystemExit:  # Lightning raises this on Ctrl-C
                raise KeyboardInterrupt from stop
            raise


def require_devices(flags: Mapping[str, Any]) -> None:
    """Check, before any work, that the machine has the devices named in Lightning's flags.

    Example:
        >>> require_devices({"accelerator": "cpu", "devices": 1})
    """
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _trainer({**flags, **dict.fromkeys(quiet, False)})


def _trainer(settings: Mapping[str, Any]) -> pl.Trainer:
    """Lightning's trainer, which looks for devices when it is built."""
    make_importable()  # before Lightning imports it
    import pytorch_lightning as pl
    from lightning_fabric.utilities.exceptions import MisconfigurationException
    from pytorch_lightning.plugins.environments import (  # type: ignore[attr-defined]
        LightningEnvironment,
    )

    disable_tf32()
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        # Otherwise Lightning, under Slurm, would count Slurm's tasks and take over its signals.
        return pl.Trainer(**settings, plugins=[LightningEnvironment()])
    except MisconfigurationException as error:
        requested = ", ".join(f"trainer.{k}={settings.get(k)}" for k in ("accelerator", "devices"))
        raise ResourceError(
            f"{requested}: {error} Choose trainer=cpu, or run on a machine with this accelerator"
        ) from error


def precision(flags: Mapping[str, Any]) -> str:
    """The precision of products: bfloat16 if the processor supports it, else float32."""
    return "bf16-mixed" if flags.get("accelerator") != "cpu" or has_bf16() else "32-true"


def context() -> SpawnContext:
    """A context that starts new interpreters, since forks with threads or a GPU may hang."""
    # Without this a helper of a sweep would wait, at its end, for processes that wait for work.
    Finalize(None, kill_workers, exitpriority=1)
    # Python's tracker of semaphores ignores Ctrl-C and SIGTERM; a closed terminal would end it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    return get_context("spawn")


_executors: WeakSet[ProcessPoolExecutor] = WeakSet()  # that kill_workers ends


def _start(processes: int, prepare: Callable[..., None], *arguments: object) -> ProcessPoolExecutor:
    started = ProcessPoolExecutor(processes, context(), initializer=prepare, initargs=arguments)
    _executors.add(started)
    return started


@lru_cache(maxsize=1)
def pool(processes: int) -> ProcessPoolExecutor:
    """Workers that are kept for the next call, since importing PyTorch takes seconds."""
    return _start(processes, prepare_worker)


def kill_workers() -> None:
    """Kill trainings that are no longer needed.

    Otherwise the program would wait for these trainings at its end.

    SIGTERM would not end a training, since Lightning catches SIGTERM.
    """
    for child in active_children():
        child.kill()
    # At its end, Python wakes the thread behind each executor; a thread that is just closing its
    # pipe would then print a traceback.
    for executor in list(_executors):
        executor.shutdown()
    _executors.clear()
    pool.cache_clear()


def prepare_worker() -> None:
    """Make a worker ignore the terminal's signals and end when its parent ends.

    Included packages are imported first, because the worker's arguments may be objects of their
    classes.
    """
    find_included_packages()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides
    # Lightning replaces the default handler by one that continues training, but not this one.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    signals.end_with_parent()


Number = TypeVar("Number", bound=np.generic)
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class Share:
    """The share of every batch and of the test captions that this process computes."""

    rank: int = 0  # of the process
    world: int = 1  # number of processes

    def take(self, rows: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Every ``world``-th row, so that each row belongs to exactly one rank.

        Example:
            >>> [Share(rank, 2).take(np.arange(5)).tolist() for rank in (0, 1)]
            [[0, 2, 4], [1, 3]]
        """
        return rows[self.rank :: self.world]


WHOLE = Share()


def world_size(flags: Mapping[str, Any]) -> int:
    """The number of processes that Lightning's flags ask for.

    Example:
        >>> world_size({"devices": 1}), world_size({"devices": [0, 3]})
        (1, 2)
    """
    devices = flags.get("devices", 1)
    if flags.get("num_nodes", 1) != 1:
        raise ValueError(
            "trainer.num_nodes must be 1: an attacker is trained on one machine; spread seeds "
            "over jobs instead, seeds=[0,12],[456,789]"
        )
    if isinstance(devices, list) and devices:
        return len(devices)
    if type(devices) is not int or devices < 1:
        raise ValueError(f"trainer.devices={devices!r} must be a number of devices, 1 or more")
    return devices


class Ranks:
    """Connected processes, one for each device."""

    def __init__(self, world: int) -> None:
        port = _free_port()
        self._members = [_start(1, _join, Share(rank, world), port) for rank in range(world)]

    def run(self, function: Callable[..., Returned], *arguments: object) -> list[Returned]:
        """Call a function in each process, with the share of the process as last argument."""
        futures = [member.submit(_with_share, function, arguments) for member in self._members]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        return [future.result() for future in futures]


@lru_cache(maxsize=1)
def ranks(world: int) -> Ranks:
    return Ranks(world)


def run_together(world: int, function: Callable[..., Returned], *arguments: object) -> Returned:
    """Call a function in ``world`` processes, and return the first process's result.

    If ``world`` is 1, the function is called in this process.
    """
    if world == 1:
        return function(*arguments, WHOLE)
    try:
        return ranks(world).run(function, *arguments)[0]
    except BaseException:
        kill_workers()
        ranks.cache_clear()
        raise


_share = WHOLE


def _join(share: Share, port: int) -> None:
    """Tell Lightning the index of this process, and how many processes there are."""
    global _share
    prepare_worker()
    _share = share
    os.environ |= {
        "LOCAL_RANK": str(share.rank),
        "NODE_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _with_share(function: Callable[..., Returned], arguments: tuple[object, ...]) -> Returned:
    return function(*arguments, _share)


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])
