"""Trains a captioner to write, word by word. Needs PyTorch and Lightning."""

from __future__ import annotations

from typing import Any

from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor

from bias_pipeline.attackers.attacker import Batch, optimization
from bias_pipeline.attackers.recipe import Optimizer, Schedule
from bias_pipeline.captioners.prompt import PAD
from bias_pipeline.learning.learner import Learner


class CaptionLearner(Learner):
    """Learns the next word of captions, given the words before it (teacher forcing).

    Args:
        network: see :class:`~bias_pipeline.captioners.decoding.Writer`.
        optimizer: of its weights.
        schedule: how the learning rate changes, None if it does not.
    """

    def __init__(self, network: Any, optimizer: Optimizer, schedule: Schedule | None) -> None:
        super().__init__()
        self.network = network
        self.optimizer, self.schedule = optimizer, schedule

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a batch, times its weight."""
        del batch_idx
        inputs = dict(batch.inputs)
        tokens = inputs.pop("tokens")
        loss = self.loss(tokens, **inputs)
        self.note(loss, len(tokens))
        return (loss + getattr(self.network, "penalty", 0.0)) * batch.weight

    def loss(self, tokens: Tensor, **picture: Tensor) -> Tensor:
        """Mean cross-entropy of a word, first within each caption (B, L), then over them.

        So a caption's weight does not depend on its batch.
        """
        likely = self.network.following(tokens[:, :-1], **picture)
        wanted = tokens[:, 1:]
        present = wanted != PAD
        log_probs = likely.gather(2, wanted[..., None]).squeeze(2) * present
        return -(log_probs.sum(dim=1) / present.sum(dim=1)).mean()

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """The recipe's optimiser and schedule."""
        return optimization(self, self.optimizer, self.schedule)
