"""Batches of captions of almost equal length, as RELIC's attacker is trained on. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bias_pipeline.attackers.ddp import Share
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.encoders.nets import N_SPECIAL, PAD, UNKNOWN

IntArray = npt.NDArray[np.int64]
Batch = tuple[Tensor, Tensor, Tensor]
WeightedBatch = tuple[Tensor, Tensor, Tensor, float]
NumberedBatches = list[tuple[int, Batch | WeightedBatch]]


class Vocabulary:
    """Words of training captions: by falling frequency, ties by the alphabet, after the specials.

    Args:
        captions: all captions.
        rows: which of them are trained on; words that stand only in others are unknown.
    """

    def __init__(self, captions: Captions, rows: IntArray) -> None:
        own = captions.take(rows)
        ranked = sorted(zip((-own.counts).tolist(), own.types, strict=True))
        number = {word: i + N_SPECIAL for i, (_, word) in enumerate(ranked)}
        self.size = len(number) + N_SPECIAL
        self._table = np.array([number.get(word, UNKNOWN) for word in captions.types], np.int64)

    def padded(self, captions: Captions, rows: IntArray) -> tuple[Tensor, Tensor]:
        """Word numbers (N, longest) and lengths (N,) of some captions; empty ones hold one pad.

        Padding is the zero vector that training never moves, so they do not touch <unk>.
        """
        lengths = captions.lengths[rows]
        tokens = np.full((len(rows), max(int(lengths.max(initial=0)), 1)), PAD, np.int64)
        inside = np.arange(tokens.shape[1]) < lengths[:, None]
        starts = np.repeat(captions.starts[rows], lengths)
        place = np.nonzero(inside)[1]
        tokens[inside] = self._table[captions.tokens[starts + place]]
        return torch.from_numpy(tokens), torch.from_numpy(np.maximum(lengths, 1))


class LengthBatches:
    """Batches for one epoch after the other.

    Each epoch permutes the captions, sorts pools of ``pool`` batches by length, cuts them into
    batches and shuffles these, so a batch holds captions of almost equal length.

    Args:
        tokens: (N, L) padded word numbers.
        lengths: (N,) lengths.
        targets: (N, ...) what is learnt.
        batch_size: captions in a batch.
        seed: of the permutations.
        pool: batches sorted together.
    """

    def __init__(
        self,
        tokens: Tensor,
        lengths: Tensor,
        targets: Tensor,
        batch_size: int,
        seed: int,
        pool: int = 100,
    ) -> None:
        self.tokens, self.lengths, self.targets = tokens, lengths, targets
        self.batch_size, self.pool = batch_size, pool
        self._generator = np.random.default_rng(seed)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.lengths), self.batch_size * self.pool)
        return whole * self.pool + -(-rest // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        order = self._generator.permutation(len(self.lengths))
        lengths = self.lengths.numpy()
        width = self.batch_size * self.pool
        batches = []
        for start in range(0, len(order), width):
            chunk = order[start : start + width]
            chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
            batches += np.split(chunk, range(self.batch_size, len(chunk), self.batch_size))
        for number in self._generator.permutation(len(batches)):
            yield self._batch(torch.from_numpy(batches[number]))

    def _batch(self, rows: Tensor) -> Batch:
        lengths = self.lengths[rows]
        return self.tokens[rows, : int(lengths.max())], lengths, self.targets[rows]


class SharedBatches:
    """What one of several processes sees of batches that all walk through in step, cut into parts.

    Gradients are averaged over processes and parts. A batch may not divide evenly, so each part
    carries a weight with which that average is the mean over the whole batch, as in one process
    and one part. Where there is no row left, one takes part with weight zero.

    Args:
        batches: the whole batches, the same in every process.
        share: of this process.
        parts: pieces of its share of a batch.
    """

    def __init__(self, batches: LengthBatches, share: Share, parts: int = 1) -> None:
        self.batches, self.share, self.parts = batches, share, parts

    def __len__(self) -> int:
        return len(self.batches) * self.parts

    def __iter__(self) -> Iterator[WeightedBatch]:
        for tokens, lengths, targets in self.batches:
            share = self.share.of(np.arange(len(lengths)))
            for part in range(self.parts):
                own = share[part :: self.parts]
                weight = len(own) * self.share.world * self.parts / len(lengths)
                rows = torch.from_numpy(own if len(own) else np.zeros(1, np.int64))
                yield tokens[rows], lengths[rows], targets[rows], weight


class SideBySide:
    """Batches of several attackers, each in its own order, one of each at a time.

    Where an attacker has fewer batches than another, it is left out of an epoch's last ones.

    Args:
        batches: of each attacker.
    """

    def __init__(self, batches: Sequence[LengthBatches | SharedBatches]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return max(map(len, self.batches))

    def __iter__(self) -> Iterator[NumberedBatches]:
        steps: Iterable[Sequence[Batch | WeightedBatch | None]] = zip_longest(*self.batches)
        for step in steps:
            yield [(number, own) for number, own in enumerate(step) if own is not None]
