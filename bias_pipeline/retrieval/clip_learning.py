"""Trains a CLIP to match captions and pictures. Needs PyTorch and Lightning."""

from __future__ import annotations

import math
from typing import Any

import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor

from bias_pipeline.attack.checkpoints import Learner

_WARM_UP = 50  # steps
_SPREAD = 0.05  # weight decay


class Contrast(Learner):
    """Each picture of a batch must find its caption among all captions, and vice versa.

    With several processes, the batch is the union of their batches. Processes exchange vectors, so
    the loss equals the loss of a single process.
    """

    def __init__(self, network: Any, learning_rate: float) -> None:
        super().__init__()
        self.network, self.learning_rate = network, learning_rate

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        """The symmetric contrast of a batch (Radford et al. 2021)."""
        del batch_idx
        output = self.network(**batch)
        pictures, texts = (
            self._of_all(vectors) for vectors in (output.image_embeds, output.text_embeds)
        )
        alike = texts @ pictures.t() * self.network.logit_scale.exp()  # vectors are of length 1
        targets = torch.arange(len(alike), device=alike.device)
        loss = (
            sum(torch.nn.functional.cross_entropy(way, targets) for way in (alike, alike.t())) / 2
        )
        assert isinstance(loss, Tensor)
        self.note(loss, len(alike))
        return loss

    def _of_all(self, vectors: Tensor) -> Tensor:
        if self.trainer.world_size == 1:
            return vectors
        gathered = self.all_gather(vectors, sync_grads=True)
        assert isinstance(gathered, Tensor)
        return gathered.flatten(0, 1)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        optimizer = torch.optim.AdamW(
            self.parameters(), lr=self.learning_rate, weight_decay=_SPREAD
        )
        n_steps = int(self.trainer.estimated_stepping_batches)
        rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, n_steps))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rate, "interval": "step"}}


def _rate(step: int, n_steps: int) -> float:
    """The learning rate divided by the highest learning rate."""
    rising = min(1.0, (step + 1) / _WARM_UP)
    return rising * 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(n_steps, 1))))
