"""Attackers of several seeds trained as one module over stacked weights. Needs PyTorch.

On a GPU a small attacker spends its time on starting small products; stacked, all seeds share each
start. Each seed keeps its own split, vocabulary, first weights, order of batches, dropout and
clipped gradient. So an attacker is the same as if it were trained alone, except for the order of
float sums (and, on a GPU, for dropout, which ``nn.LSTM`` draws differently there).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn

from bias_pipeline.attackers.attacker import Attacker, optimization
from bias_pipeline.attackers.batches import NumberedBatches
from bias_pipeline.attackers.stacked.dispatch import decide, encode


class Ensemble(pl.LightningModule):
    """S attackers that take their steps together.

    Args:
        members: S attackers of one description that can be stacked.
        seeds: of each.
        states: state of the processor's random numbers after each was built.
    """

    def __init__(
        self, members: Sequence[Attacker], seeds: Sequence[int], states: Sequence[Tensor]
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.seeds, self.states = tuple(seeds), tuple(states)
        self.generators: list[torch.Generator] = []
        self.sums = torch.zeros(0)

    def attackers(self) -> list[Attacker]:
        """The members."""
        return [cast("Attacker", member) for member in self.members]

    def on_fit_start(self) -> None:
        """Give each member a generator on the device; on the processor, with its state if alone."""
        if self.device.type == "cpu":
            self.generators = [torch.Generator() for _ in self.states]
            for generator, state in zip(self.generators, self.states, strict=True):
                generator.set_state(state)
        else:
            self.generators = [
                torch.Generator(self.device).manual_seed(seed) for seed in self.seeds
            ]

    def on_train_epoch_start(self) -> None:
        """Reset each member's mean loss."""
        self.sums = torch.zeros(len(self.members), 2, device=self.device)

    def training_step(self, batch: NumberedBatches, batch_idx: int) -> Tensor:
        """The sum of the members' losses, whose gradient is each member's own."""
        del batch_idx
        members = [self.attackers()[number] for number, _ in batch]
        generators = [self.generators[number] for number, _ in batch]
        nets = [member.encoder for member in members]
        vectors = encode(
            nets, [member_batch.inputs for _, member_batch in batch], generators
        )  # (S, N, D)
        rows = [len(member_batch.targets) for _, member_batch in batch]
        heads = [cast("nn.Sequential", member.head) for member in members]
        outputs = decide(heads, vectors, rows, generators)  # (S, N, O)
        total = outputs.new_zeros((), dtype=torch.float32)
        for place, member, (number, member_batch) in zip(outputs, members, batch, strict=True):
            loss = member.loss(place[: len(member_batch.targets)], member_batch.targets)
            self._note(number, loss, len(member_batch.targets))
            total = total + loss * member_batch.weight
        return total

    def _note(self, number: int, loss: Tensor, n_rows: int) -> None:
        self.sums[number, 0] += loss.detach() * n_rows
        self.sums[number, 1] += n_rows

    def on_train_epoch_end(self) -> None:
        """Record the epoch's mean losses."""
        means = (self.sums[:, 0] / self.sums[:, 1]).tolist()
        for member, mean in zip(self.attackers(), means, strict=True):
            member.losses.append(mean)
        self.log("train_loss", sum(means) / len(means))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """One optimiser that treats each weight alone; it skips members without a batch."""
        first = self.attackers()[0]
        return optimization(self, first.optimizer, first.schedule)

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip each member's gradient alone."""
        del optimizer
        for member in self.members if gradient_clip_val else ():
            if gradient_clip_algorithm == "value":
                nn.utils.clip_grad_value_(member.parameters(), float(gradient_clip_val or 0))
            else:
                nn.utils.clip_grad_norm_(member.parameters(), float(gradient_clip_val or 0))
