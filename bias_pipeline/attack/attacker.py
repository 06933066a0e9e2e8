"""Defines attackers, their batches, the best epoch, and ensembles of attackers. Needs PyTorch.

An attacker is an encoder with a head that guesses the attribute. Batches have captions of almost
equal length, as in RELIC's attacker. On a GPU, starting a small matrix product takes longer than
computing it. Therefore the attackers of all seeds are stacked, so that one product serves all
seeds. Each seed keeps its own split, vocabulary, first weights, order of batches, dropout and
clipped gradient. So an attacker is the same as if it were trained alone, except for the order of
float sums. On a GPU dropout differs too, because ``nn.LSTM`` draws dropout differently there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, cast

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning import Callback
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack.checkpoints import Learner
from bias_pipeline.attack.encoder import Inputs
from bias_pipeline.attack.lightning_loop import Share
from bias_pipeline.attack.probe import TrainingJob
from bias_pipeline.attack.recipe import Optimizer, Recipe, Schedule
from bias_pipeline.attack.stacked import decide, encode

CPU = torch.device("cpu")


class Batch(NamedTuple):
    """B captions to learn from."""

    inputs: Mapping[str, Tensor]  # name to (B, ...) arguments of the encoder's `forward`
    targets: Tensor  # (B, ...) the truth
    weight: float = 1.0  # of the loss


NumberedBatches = list[tuple[int, Batch]]


def tensors(inputs: Inputs, rows: IntArray, device: torch.device = CPU) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array).to(device) for name, array in inputs.batch(rows).items()}


class LengthBatches:
    """Batches for each epoch.

    Each epoch permutes the captions and divides them into pools of ``pool`` batches. Each pool is
    sorted by length and cut into batches, and the batches are shuffled. So the captions in a batch
    have almost equal length. ``rows`` (N,) are the training captions, and ``targets`` (N, ...) are
    their true labels. With ``shares`` (N,), each epoch draws N captions with these probabilities.
    Otherwise each caption is used once. The generator ``order`` draws the permutations.
    """

    def __init__(
        self,
        inputs: Inputs,
        rows: IntArray,
        targets: Tensor,
        batch_size: int,
        seed: int,
        pool: int = 100,
        shares: Float64Array | None = None,
    ) -> None:
        self.inputs, self.rows, self.targets, self.shares = inputs, rows, targets, shares
        self.lengths = inputs.lengths[rows]
        self.batch_size, self.pool = batch_size, pool
        self.order = np.random.default_rng(seed)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.lengths), self.batch_size * self.pool)
        return whole * self.pool + -(-rest // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        n = len(self.lengths)
        order = (
            self.order.permutation(n)
            if self.shares is None
            else self.order.choice(n, n, p=self.shares)
        )
        width = self.batch_size * self.pool
        batches = []
        for start in range(0, len(order), width):
            chunk = order[start : start + width]
            chunk = chunk[np.argsort(self.lengths[chunk], kind="stable")]
            batches += np.split(chunk, range(self.batch_size, len(chunk), self.batch_size))
        for number in self.order.permutation(len(batches)):
            chosen = batches[number]
            yield Batch(
                tensors(self.inputs, self.rows[chosen]), self.targets[torch.from_numpy(chosen)]
            )


class SharedBatches:
    """The share of each batch on which one of several processes trains.

    The share is cut into parts.

    Gradients are averaged over processes and parts. A batch may not divide evenly, so parts have
    weights. With these weights, the average equals the mean over the whole batch in a single
    process. A part without rows gets one row with weight zero.
    """

    def __init__(self, batches: LengthBatches, share: Share, parts: int = 1) -> None:
        self.batches, self.share, self.parts = batches, share, parts
        self.order = batches.order

    def __len__(self) -> int:
        return len(self.batches) * self.parts

    def __iter__(self) -> Iterator[Batch]:
        for whole in self.batches:
            n_rows = len(whole.targets)
            share = self.share.take(np.arange(n_rows))
            for part in range(self.parts):
                piece = share[part :: self.parts]
                weight = len(piece) * self.share.world * self.parts / n_rows
                rows = torch.from_numpy(piece if len(piece) else np.zeros(1, np.int64))
                inputs = {name: array[rows] for name, array in whole.inputs.items()}
                yield Batch(inputs, whole.targets[rows], weight)


class SideBySide:
    """Batches of several attackers. Each training step has one batch of every attacker.

    If an attacker has fewer batches than the others, it skips the last steps of an epoch.
    """

    def __init__(self, batches: Sequence[LengthBatches | SharedBatches]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return max(map(len, self.batches))

    def __iter__(self) -> Iterator[NumberedBatches]:
        steps: Iterable[Sequence[Batch | None]] = zip_longest(*self.batches)
        for step in steps:
            yield [(number, batch) for number, batch in enumerate(step) if batch is not None]


class Attacker(Learner):
    """Guesses one of K groups, or T independent tasks, from captions.

    The encoder maps its inputs to vectors (N, D), the head maps vectors to outputs (N, O). Two
    groups have one output under a sigmoid (as in the LIC code), K > 2 groups have K outputs under a
    softmax, and T tasks have T outputs under sigmoids.
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
        """The outputs, (N, O), before the sigmoid or softmax."""
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
        """Mean cross-entropy of (N, O) outputs with the truth: (N,) groups or (N, T) tasks."""
        outputs = outputs.float()
        if self.exclusive and outputs.shape[1] > 1:
            return nn.functional.cross_entropy(outputs, targets)
        wanted = targets.reshape(outputs.shape).float()
        return nn.functional.binary_cross_entropy_with_logits(outputs, wanted)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        return optimization(self, self.optimizer, self.schedule)

    @torch.no_grad()
    def probabilities(self, **inputs: Tensor) -> Tensor:
        """The predictions, (N, K) or (N, T), without dropout."""
        self.eval()
        outputs = self(**inputs).double()
        if self.exclusive and outputs.shape[1] > 1:
            return outputs.softmax(dim=1)
        p = outputs.sigmoid()
        return torch.cat([1 - p, p], dim=1) if self.exclusive else p


def optimization(
    module: pl.LightningModule, optimizer: Optimizer, schedule: Schedule | None
) -> OptimizerLRScheduler:
    """An optimiser and a schedule of the learning rate, in the form that Lightning takes."""
    built = optimizer.build(module)
    if schedule is None:
        return built
    n_steps = int(module.trainer.estimated_stepping_batches)
    rate = torch.optim.lr_scheduler.LambdaLR(built, lambda step: schedule.factor(step, n_steps))
    return {"optimizer": built, "lr_scheduler": {"scheduler": rate, "interval": "step"}}


class Ensemble(pl.LightningModule):
    """S attackers that are trained together, step by step."""

    def __init__(
        self, members: Sequence[Attacker], seeds: Sequence[int], states: Sequence[Tensor]
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.seeds, self.states = tuple(seeds), tuple(states)
        self.generators: list[torch.Generator] = []
        self.sums = torch.zeros(0)

    def attackers(self) -> list[Attacker]:
        return [cast("Attacker", member) for member in self.members]

    def on_fit_start(self) -> None:
        """Give each member a generator in the state that it would have if trained alone."""
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
        """The sum of all members' losses. Each member gets only the gradient of its own loss."""
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
        means = (self.sums[:, 0] / self.sums[:, 1]).tolist()
        for member, mean in zip(self.attackers(), means, strict=True):
            member.losses.append(mean)
        self.log("train_loss", sum(means) / len(means))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """One optimiser for all members, which skips members without a batch."""
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


def checkpoint_name(version: int, recipe: Recipe, data: str, job: TrainingJob) -> str:
    """A name (hex digest) from all settings that change an attacker's weights."""
    spec = json.dumps(recipe.spec, sort_keys=True)
    sha = hashlib.sha256(f"{version} {spec} {data} {job.seed} {recipe.parts}".encode())
    for rows in (job.train, job.validation):
        sha.update(rows.astype("<i8").tobytes() + b"|")
    return sha.hexdigest()


class Best(Callback):
    """Keeps the weights of the epoch that has the lowest loss on the validation part."""

    def __init__(self, inputs: Inputs, rows: np.ndarray[Any, Any], targets: Tensor) -> None:
        self.inputs, self.rows, self.targets = inputs, rows, targets
        self.loss = float("inf")
        self.weights: dict[str, Tensor] = {}

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        del trainer
        assert isinstance(pl_module, Attacker)
        loss = self._loss(pl_module)
        if loss < self.loss:
            self.loss = loss
            state = pl_module.state_dict()
            self.weights = {name: value.detach().cpu().clone() for name, value in state.items()}

    @torch.no_grad()
    def _loss(self, attacker: Attacker) -> float:
        """The mean loss over the validation part, without dropout."""
        attacker.eval()
        together = int(getattr(attacker.encoder, "together", len(self.rows))) or 1
        total = 0.0
        for start in range(0, len(self.rows), together):
            rows = self.rows[start : start + together]
            inputs = tensors(self.inputs, rows, attacker.device)
            truth = self.targets[start : start + together].to(attacker.device)
            total += float(attacker.loss(attacker(**inputs), truth)) * len(rows)
        attacker.train()
        return total / len(self.rows)

    def state_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "weights": self.weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.loss, self.weights = state_dict["loss"], state_dict["weights"]

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        del trainer
        if self.weights:
            pl_module.load_state_dict(self.weights)
