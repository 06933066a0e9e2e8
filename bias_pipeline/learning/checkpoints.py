"""Long trainings go on where they were killed. Needs PyTorch and Lightning."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning import callbacks
from torch import distributed

from bias_pipeline.errors import ResourceError
from bias_pipeline.learning.learner import Learner

T = TypeVar("T")

log = logging.getLogger(__name__)

_OWN = "bias_pipeline"  # what checkpoints hold beside Lightning's own
_LIGHTNINGS = ("state_dict", "optimizer_states", "lr_schedulers", "loops", "epoch", "global_step")


class Ordered(Protocol):
    """Batches whose order is drawn anew each epoch.

    Attributes:
        order: draws it.
    """

    order: np.random.Generator


class Checkpoint(callbacks.Checkpoint):
    """Writes a checkpoint at the end of an epoch, if the last one is old, and begins from it.

    Beside Lightning's own it holds where the random numbers of weights and batches are, so a
    training that was killed ends in the same numbers.

    Args:
        path: the file; every process writes to a draft of its own, and the file is whole or absent.
        batches: whose order goes on.
        every_s: seconds between two.
    """

    def __init__(self, path: Path, batches: Ordered, every_s: float) -> None:
        self.path, self.every_s = path, every_s
        self._order = batches.order
        self._last = time.monotonic()
        self._state: Mapping[str, Any] | None = None

    def found(self, module: torch.nn.Module) -> Path | None:
        """The checkpoint that a training goes on from, None if there is none of this network."""
        if not self.path.is_file():
            return None
        try:
            _check(torch.load(self.path, map_location="cpu", weights_only=True), module)
        except Exception as error:  # whatever a damaged file makes of the library
            first = (str(error).splitlines() or [type(error).__name__])[0]
            log.warning("%s cannot be gone on from and counts as absent: %s", self.path, first)
            return None
        log.info("going on from %s", self.path)
        return self.path

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write, if it is time."""
        del pl_module
        due = trainer.strategy.broadcast(time.monotonic() - self._last >= self.every_s)
        last = trainer.current_epoch + 1 >= (trainer.max_epochs or 0)
        if due and not last:
            self._write(trainer)
            self._last = time.monotonic()

    def _write(self, trainer: pl.Trainer) -> None:
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            trainer.save_checkpoint(draft)
            if trainer.is_global_zero:
                draft.replace(self.path)
        except OSError as error:
            raise ResourceError(
                f"cannot keep checkpoints in {self.path.parent}: {error.strerror}; "
                "probe.checkpoint_minutes=null writes none"
            ) from error
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Add what Lightning does not know."""
        assert isinstance(pl_module, Learner)
        checkpoint[_OWN] = {
            "order": json.dumps(self._order.bit_generator.state),
            "random": _of_all_ranks(trainer, torch.get_rng_state()),
            "random_gpu": torch.cuda.get_rng_state() if pl_module.device.type == "cuda" else None,
            "losses": _of_all_ranks(trainer, list(pl_module.losses)),
        }

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Take the losses; random numbers wait until all is set up."""
        assert isinstance(pl_module, Learner)
        self._state = checkpoint[_OWN]
        pl_module.losses = self._state["losses"][trainer.global_rank]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Go on with the random numbers of the checkpoint, if it began from one."""
        if self._state is None:
            return
        self._order.bit_generator.state = json.loads(self._state["order"])
        torch.set_rng_state(self._state["random"][trainer.global_rank])
        if self._state["random_gpu"] is not None and pl_module.device.type == "cuda":
            torch.cuda.set_rng_state(self._state["random_gpu"])

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Nobody needs it any more."""
        del pl_module
        if trainer.is_global_zero:
            with contextlib.suppress(OSError):
                self.path.unlink()


def _check(checkpoint: Any, module: torch.nn.Module) -> None:
    """Know that a file is a checkpoint of a network, written here.

    Raises:
        ValueError: if it is not.
    """
    held = checkpoint if isinstance(checkpoint, Mapping) else {}
    lacking = sorted({*_LIGHTNINGS, _OWN} - set(held))
    if lacking:
        raise ValueError(f"no checkpoint of a training; it lacks {', '.join(lacking)}")
    theirs, ours = (
        {name: tuple(own.shape) for name, own in weights.items()}
        for weights in (held["state_dict"], module.state_dict())
    )
    if theirs != ours:
        raise ValueError("a checkpoint of another network")


def _of_all_ranks(trainer: pl.Trainer, own: T) -> list[T]:
    if trainer.world_size == 1:
        return [own]
    found: list[Any] = [None] * trainer.world_size
    distributed.all_gather_object(found, own)
    return found
