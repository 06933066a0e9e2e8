"""What is trained here. Needs PyTorch and Lightning."""

from __future__ import annotations

import pytorch_lightning as pl
from torch import Tensor


class Learner(pl.LightningModule):
    """A module that puts the mean loss of each epoch down.

    Attributes:
        losses: mean loss over what it learns from in each epoch so far, dropout included.
    """

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def note(self, loss: Tensor, n_rows: int) -> None:
        """Take the mean loss of a batch of so many rows into that of the epoch."""
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=n_rows)

    def on_train_epoch_end(self) -> None:
        """Put the epoch's mean loss down."""
        self.losses.append(float(self.trainer.callback_metrics["train_loss"]))
