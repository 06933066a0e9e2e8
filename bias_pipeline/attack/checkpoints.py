"""The base class of trained modules, and checkpoints from which a killed training resumes.

Needs PyTorch and Lightning.
"""

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
from torch import Tensor, distributed

from bias_pipeline.errors import ResourceError


class Learner(pl.LightningModule):
    """A module that records the mean loss of each epoch.

    Attributes:
        losses: mean training loss of each epoch so far, with dropout.
    """

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def note(self, loss: Tensor, n_rows: int) -> None:
        """Add the mean loss of a batch of ``n_rows`` rows to the epoch's loss."""
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=n_rows)

    def on_train_epoch_end(self) -> None:
        self.losses.append(float(self.trainer.callback_metrics["train_loss"]))


T = TypeVar("T")

log = logging.getLogger(__name__)

_OUR_KEY = "bias_pipeline"  # key of our part of a checkpoint
_LIGHTNINGS = ("state_dict", "optimizer_states", "lr_schedulers", "loops", "epoch", "global_step")


class Ordered(Protocol):
    """Batches whose order is drawn for each epoch."""

    order: np.random.Generator  # generator of the order


class Checkpoint(callbacks.Checkpoint):
    """Writes a checkpoint after an epoch if the last checkpoint is old, and resumes training.

    Two checkpoints are at least ``every_s`` seconds apart. A checkpoint also contains the states of
    the random generators, so that a resumed training gives the same numbers.
    """

    def __init__(self, path: Path, batches: Ordered, every_s: float) -> None:
        self.path, self.every_s = path, every_s
        self._order = batches.order
        self._last = time.monotonic()
        self._state: Mapping[str, Any] | None = None

    def resumable(self, module: torch.nn.Module) -> Path | None:
        """The checkpoint from which a training resumes, if there is one."""
        if not self.path.is_file():
            return None
        try:
            _check(torch.load(self.path, map_location="cpu", weights_only=True), module)
        except Exception as error:  # the library can raise anything on a damaged file
            first = (str(error).splitlines() or [type(error).__name__])[0]
            log.warning("%s cannot be resumed from and is ignored: %s", self.path, first)
            return None
        log.info("resuming from %s", self.path)
        return self.path

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
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
                f"cannot write checkpoints to {self.path.parent}: {error.strerror}; "
                "probe.checkpoint_minutes=null writes none"
            ) from error
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Add the losses and the states of random generators to the checkpoint."""
        assert isinstance(pl_module, Learner)
        checkpoint[_OUR_KEY] = {
            "order": json.dumps(self._order.bit_generator.state),
            "random": _of_all_ranks(trainer, torch.get_rng_state()),
            "random_gpu": torch.cuda.get_rng_state() if pl_module.device.type == "cuda" else None,
            "losses": _of_all_ranks(trainer, list(pl_module.losses)),
        }

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Load the losses. Random generators are restored only when training starts."""
        assert isinstance(pl_module, Learner)
        self._state = checkpoint[_OUR_KEY]
        pl_module.losses = self._state["losses"][trainer.global_rank]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Restore the random generators if training resumes from a checkpoint."""
        if self._state is None:
            return
        self._order.bit_generator.state = json.loads(self._state["order"])
        torch.set_rng_state(self._state["random"][trainer.global_rank])
        if self._state["random_gpu"] is not None and pl_module.device.type == "cuda":
            torch.cuda.set_rng_state(self._state["random_gpu"])

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Delete the file, which is no longer needed."""
        del pl_module
        if trainer.is_global_zero:
            with contextlib.suppress(OSError):
                self.path.unlink()


def _check(checkpoint: Any, module: torch.nn.Module) -> None:
    """Check that a file is a checkpoint that we wrote for this network."""
    content = checkpoint if isinstance(checkpoint, Mapping) else {}
    lacking = sorted({*_LIGHTNINGS, _OUR_KEY} - set(content))
    if lacking:
        raise ValueError(f"not a checkpoint of a training: it lacks {', '.join(lacking)}")
    theirs, ours = (
        {name: tuple(tensor.shape) for name, tensor in weights.items()}
        for weights in (content["state_dict"], module.state_dict())
    )
    if theirs != ours:
        raise ValueError("a checkpoint of another network")


def _of_all_ranks(trainer: pl.Trainer, item: T) -> list[T]:
    if trainer.world_size == 1:
        return [item]
    items: list[Any] = [None] * trainer.world_size
    distributed.all_gather_object(items, item)
    return items
