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
    """Where checkpoints of trainings lie.

    Attributes:
        folder: of all.
        version: of what is trained; a checkpoint of another one is none.
        minutes: that lie between two; a training that takes less writes none.
    """

    folder: str
    version: int
    minutes: float

    def of(self, name: str, batches: Ordered) -> Checkpoint:
        """The checkpoint of a training.

        Args:
            name: by all that decides its weights.
            batches: what it learns from.
        """
        from bias_pipeline.learning.checkpoints import Checkpoint

        return Checkpoint(Path(self.folder) / f"{name}.ckpt", batches, 60 * self.minutes)


def run(
    module: pl.LightningModule,
    batches: Any,
    settings: Mapping[str, Any],
    callbacks: Sequence[Callback] = (),
) -> None:
    """Lightning's loop; its advice for data loaders does not fit a list in memory.

    Args:
        module: learns.
        batches: what it learns from, the same whenever an epoch begins or drawn anew.
        settings: Lightning's flags.
        callbacks: Lightning's; with a :class:`~bias_pipeline.learning.checkpoints.Checkpoint` the
            loop goes on where it was killed.

    Raises:
        ResourceError: if the devices are absent.
    """
    from bias_pipeline.learning.checkpoints import Checkpoint

    ours = next((own for own in callbacks if isinstance(own, Checkpoint)), None)
    begun = ours.found(module) if ours else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Without checkpoints of ours Lightning would write its own into the current folder.
            kept = {"enable_checkpointing": True} if ours else {}
            trainer = _trainer({**settings, **kept, "callbacks": list(callbacks)})
            trainer.fit(module, batches, ckpt_path=begun, weights_only=True)
        except SystemExit as stop:
            if type(stop) is SystemExit:  # what Lightning makes of Ctrl-C
                raise KeyboardInterrupt from stop
            raise


def require_devices(own: Mapping[str, Any]) -> None:
    """Know before any work that the devices of Lightning's flags are there.

    Raises:
        ResourceError: if they are not.

    Example:
        >>> require_devices({"accelerator": "cpu", "devices": 1})
    """
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _trainer({**own, **dict.fromkeys(quiet, False)})


def _trainer(settings: Mapping[str, Any]) -> pl.Trainer:
    """Lightning's trainer, which looks for its devices when it is built."""
    make_importable()  # before Lightning asks for it
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
        asked = ", ".join(f"trainer.{k}={settings.get(k)}" for k in ("accelerator", "devices"))
        raise ResourceError(
            f"{asked}: {error} Choose trainer=cpu, or run where there is one"
        ) from error


def precision(own: Mapping[str, Any]) -> str:
    """bfloat16 products where the processor multiplies them itself, else float32."""
    return "bf16-mixed" if own.get("accelerator") != "cpu" or has_bf16() else "32-true"


@lru_cache(maxsize=1)
def has_bf16() -> bool:
    """Whether this processor multiplies bfloat16 matrices itself."""
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123 - not a file in any folder of ours
            own = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return "avx512_bf16" in own or "amx_bf16" in own
