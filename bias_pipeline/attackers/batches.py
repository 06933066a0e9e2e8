"""Batches of captions of almost equal length, as in RELIC's attacker. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bias_pipeline.array_types import IntArray
from bias_pipeline.encoders.base import Inputs
from bias_pipeline.learning.distributed import Share


class Batch(NamedTuple):
    """B captions to learn from.

    Attributes:
        inputs: name to (B, ...) arguments of the encoder's ``forward``.
        targets: (B, ...) the truth.
        weight: of the loss.
    """

    inputs: Mapping[str, Tensor]
    targets: Tensor
    weight: float = 1.0


NumberedBatches = list[tuple[int, Batch]]


def tensors(inputs: Inputs, rows: IntArray) -> dict[str, Tensor]:
    """The inputs of some captions, for a network."""
    return {name: torch.from_numpy(array) for name, array in inputs.batch(rows).items()}


class LengthBatches:
    """Batches for each epoch.

    Each epoch permutes the captions, sorts pools of ``pool`` batches by length, cuts them into
    batches and shuffles these, so a batch holds captions of almost equal length.

    Args:
        inputs: of all captions.
        rows: (N,) which of them are trained on.
        targets: (N, ...) the truth.
        batch_size: captions in a batch.
        seed: of the permutations.
        pool: batches sorted together.

    Attributes:
        order: draws the permutations, epoch after epoch.
    """

    def __init__(
        self,
        inputs: Inputs,
        rows: IntArray,
        targets: Tensor,
        batch_size: int,
        seed: int,
        pool: int = 100,
    ) -> None:
        self.inputs, self.rows, self.targets = inputs, rows, targets
        self.lengths = inputs.lengths[rows]
        self.batch_size, self.pool = batch_size, pool
        self.order = np.random.default_rng(seed)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.lengths), self.batch_size * self.pool)
        return whole * self.pool + -(-rest // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        order = self.order.permutation(len(self.lengths))
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
    """One process's share of batches that several processes train on together, cut into parts.

    Gradients are averaged over processes and parts. A batch may not divide evenly, so each part
    has a weight that makes this average the mean over the whole batch, as in one process and one
    part. A part without rows gets one row with weight zero.

    Args:
        batches: the whole batches, the same in every process.
        share: of this process.
        parts: pieces of its share of a batch.
    """

    def __init__(self, batches: LengthBatches, share: Share, parts: int = 1) -> None:
        self.batches, self.share, self.parts = batches, share, parts
        self.order = batches.order

    def __len__(self) -> int:
        return len(self.batches) * self.parts

    def __iter__(self) -> Iterator[Batch]:
        for whole in self.batches:
            n_rows = len(whole.targets)
            share = self.share.of(np.arange(n_rows))
            for part in range(self.parts):
                piece = share[part :: self.parts]
                weight = len(piece) * self.share.world * self.parts / n_rows
                rows = torch.from_numpy(piece if len(piece) else np.zeros(1, np.int64))
                inputs = {name: array[rows] for name, array in whole.inputs.items()}
                yield Batch(inputs, whole.targets[rows], weight)


class SideBySide:
    """Batches of several attackers, each in its own order, one of each at a time.

    An attacker with fewer batches than another is left out of an epoch's last steps.

    Args:
        batches: of each attacker.
    """

    def __init__(self, batches: Sequence[LengthBatches | SharedBatches]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return max(map(len, self.batches))

    def __iter__(self) -> Iterator[NumberedBatches]:
        steps: Iterable[Sequence[Batch | None]] = zip_longest(*self.batches)
        for step in steps:
            yield [(number, batch) for number, batch in enumerate(step) if batch is not None]
