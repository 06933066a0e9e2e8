"""The attacker: an encoder and a head that guess the attribute. Needs PyTorch and Lightning."""

from __future__ import annotations

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn

from bias_pipeline.attackers.batches import Batch
from bias_pipeline.attackers.optimizers import Optimizer, Schedule
from bias_pipeline.learning.learner import Learner


class Attacker(Learner):
    """Guesses K exclusive groups or T independent tasks from captions.

    Two groups have a single output under a sigmoid (as in the LIC code), K > 2 a softmax over K
    outputs, T tasks one sigmoid each.

    Args:
        encoder: its inputs, by name, to vectors (N, D).
        head: vectors (N, D) to outputs (N, O).
        exclusive: whether groups exclude each other.
        optimizer: moves its weights.
        schedule: how the learning rate changes, None if it does not.
    """

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        exclusive: bool,
        optimizer: Optimizer,
        schedule: Schedule | None = None,
    ) -> None:
        super().__init__()
        self.optimizer, self.schedule = optimizer, schedule
        self.encoder = encoder
        self.head = head
        self.exclusive = exclusive

    def forward(self, **inputs: Tensor) -> Tensor:
        """Outputs (N, O) before the sigmoid or softmax."""
        outputs: Tensor = self.head(self.encoder(**inputs))
        return outputs

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch, times its weight."""
        del batch_idx
        loss = self.loss(self(**batch.inputs), batch.targets)
        self.note(loss, len(batch.targets))
        # The encoder's own penalty on its weights, such as on attention that is not spread out.
        return (loss + getattr(self.encoder, "penalty", 0.0)) * batch.weight

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy of outputs (N, O) with the truth, (N,) groups or (N, T) tasks."""
        outputs = outputs.float()
        if self.exclusive and outputs.shape[1] > 1:
            return nn.functional.cross_entropy(outputs, targets)
        wanted = targets.reshape(outputs.shape).float()
        return nn.functional.binary_cross_entropy_with_logits(outputs, wanted)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """The recipe's optimiser and schedule."""
        return optimization(self, self.optimizer, self.schedule)

    @torch.no_grad()
    def probabilities(self, **inputs: Tensor) -> Tensor:
        """Predictions (N, K) or (N, T), without dropout."""
        self.eval()
        outputs = self(**inputs).double()
        if self.exclusive and outputs.shape[1] > 1:
            return outputs.softmax(dim=1)
        p = outputs.sigmoid()
        return torch.cat([1 - p, p], dim=1) if self.exclusive else p


def optimization(
    module: pl.LightningModule, optimizer: Optimizer, schedule: Schedule | None
) -> OptimizerLRScheduler:
    """An optimiser and a learning rate that changes with each step, as Lightning takes them."""
    built = optimizer.build(module)
    if schedule is None:
        return built
    n_steps = int(module.trainer.estimated_stepping_batches)
    rate = torch.optim.lr_scheduler.LambdaLR(built, lambda step: schedule.factor(step, n_steps))
    return {"optimizer": built, "lr_scheduler": {"scheduler": rate, "interval": "step"}}
