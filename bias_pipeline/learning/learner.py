"""Base class of all trained modules. Needs PyTorch and Lightning."""

from __future__ import annotations

import pytorch_lightning as pl
from torch import Tensor


class Learner(pl.LightningModule):
    """A module that records the mean loss of each epoch.

    Attributes:
        losses: mean training loss of each epoch so far, with dropout.
    """

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def note(self, loss: Tensor, n_rows: int) -> None:
        """Add the mean loss of a batch of ``n_rows`` rows to that of the epoch."""
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=n_rows)

    def on_train_epoch_end(self) -> None:
        """Record the epoch's mean loss."""
        self.losses.append(float(self.trainer.callback_metrics["train_loss"]))
