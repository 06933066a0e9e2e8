"""Lightning's loop and trainer; both are imported when something is trained."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import ResourceError
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from pytorch_lightning import Callback

    from bias_pipeline.learning.checkpoints import Checkpoint, Ordered


@dataclass(frozen=True)
class Survival:
    """Settings of checkpoints."""

    folder: str  # of all checkpoints
    version: int  # of what is trained; checkpoints of other versions are ignored
    minutes: float  # between two checkpoints; a shorter training writes none

    def of(self, name: str, batches: Ordered) -> Checkpoint:
        """The checkpoint of a training.

        Args:
            name: from all settings that change its weights.
            batches: its training batches.
        """
        from bias_pipeline.learning.checkpoints import Checkpoint

        return Checkpoint(Path(self.folder) / f"{name}.ckpt", batches, 60 * self.minutes)


def run_training(
    module: pl.LightningModule,
    batches: Any,
    settings: Mapping[str, Any],
    callbacks: Sequence[Callback] = (),
) -> None:
    """Train with Lightning's loop, without its warnings about data loaders.

    Args:
        module: to train.
        batches: iterated once an epoch.
        settings: Lightning's flags.
        callbacks: Lightning's; with a :class:`~bias_pipeline.learning.checkpoints.Checkpoint` a
            killed training resumes.

    Raises:
        ResourceError: if the devices are missing.
    """
    from bias_pipeline.learning.checkpoints import Checkpoint

    ours = next((callback for callback in callbacks if isinstance(callback, Checkpoint)), None)
    begun = ours.resumable(module) if ours else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Without checkpoints of ours Lightning would write its own into the current folder.
            extra = {"enable_checkpointing": True} if ours else {}
            trainer = _trainer({**settings, **extra, "callbacks": list(callbacks)})
            trainer.fit(module, batches, ckpt_path=begun, weights_only=True)
        except SystemExit as stop:
            if type(stop) is SystemExit:  # Lightning raises this on Ctrl-C
                raise KeyboardInterrupt from stop
            raise


def require_devices(flags: Mapping[str, Any]) -> None:
    """Check before any work that the devices of Lightning's flags are there.

    Raises:
        ResourceError: if they are missing.

    Example:
        >>> require_devices({"accelerator": "cpu", "devices": 1})
    """
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _trainer({**flags, **dict.fromkeys(quiet, False)})


def _trainer(settings: Mapping[str, Any]) -> pl.Trainer:
    """Lightning's trainer, which looks for its devices when it is built."""
    make_importable()  # before Lightning imports it
    import pytorch_lightning as pl
    from lightning_fabric.utilities.exceptions import MisconfigurationException
    from pytorch_lightning.plugins.environments import (  # type: ignore[attr-defined]
        LightningEnvironment,
    )

    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        # Otherwise Lightning, under Slurm, would count Slurm's tasks and take over its signals.
        return pl.Trainer(**settings, plugins=[LightningEnvironment()])
    except MisconfigurationException as error:
        requested = ", ".join(f"trainer.{k}={settings.get(k)}" for k in ("accelerator", "devices"))
        raise ResourceError(
            f"{requested}: {error} Choose trainer=cpu, or run on a machine that has one"
        ) from error


def precision(flags: Mapping[str, Any]) -> str:
    """bfloat16 products if the processor supports them, else float32."""
    return "bf16-mixed" if flags.get("accelerator") != "cpu" or has_bf16() else "32-true"


@lru_cache(maxsize=1)
def has_bf16() -> bool:
    """Whether this processor supports products of bfloat16 matrices."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123 - not a file in any folder of ours
            cpu_flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return "avx512_bf16" in cpu_flags or "amx_bf16" in cpu_flags
