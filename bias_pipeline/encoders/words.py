"""Captions as word ids, for networks trained from scratch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.encoders.base import Items, NetEncoder

UNKNOWN, PAD = 0, 1
N_SPECIAL = 2


class WordEncoder(NetEncoder):
    """A network over whole words: ``forward(tokens, lengths)``."""

    def read(self, data: LabelledCaptions) -> Words:
        """The captions, whose words have no ids yet."""
        return Words(data.captions)


@dataclass(frozen=True, eq=False)
class Words(Items):
    """Captions whose words have no ids yet."""

    captions: Captions

    def fit(self, train: IntArray) -> WordInputs:
        """Ids for the words of the training captions."""
        return WordInputs(self.captions, train)


class WordInputs:
    """Word ids of N captions, padded batch by batch.

    Words of training captions get ids by falling frequency, ties by the alphabet, after the special
    ones. Words that occur only in other captions are unknown. An empty caption has one pad, whose
    vector is zero and never trained, so it does not affect <unk>.

    Args:
        captions: all captions.
        train: which of them are trained on.

    Attributes:
        size: how many ids there are, the special ones included.
        lengths: (N,) words of each caption, at least 1.

    Example:
        >>> inputs = WordInputs(Captions.from_texts(["a dog", "a cat sat"]), np.array([0]))
        >>> inputs.batch(np.array([0, 1]))["tokens"].tolist()
        [[2, 3, 1], [2, 0, 0]]
    """

    def __init__(self, captions: Captions, train: IntArray) -> None:
        training = captions.take(train)
        ranked = sorted(zip((-training.counts).tolist(), training.types, strict=True))
        number = {word: i + N_SPECIAL for i, (_, word) in enumerate(ranked)}
        table = np.array([number.get(word, UNKNOWN) for word in captions.types], np.int64)
        self.size = len(number) + N_SPECIAL
        self.lengths = np.maximum(captions.lengths, 1)
        self._captions = captions
        self._numbers = table[captions.tokens]

    def batch(self, rows: IntArray) -> Mapping[str, IntArray]:
        """``tokens`` (B, L) padded to the longest, and ``lengths`` (B,)."""
        lengths = self._captions.lengths[rows]
        tokens = np.full((len(rows), max(int(lengths.max(initial=0)), 1)), PAD, np.int64)
        inside = np.arange(tokens.shape[1]) < lengths[:, None]
        place = np.nonzero(inside)[1]
        tokens[inside] = self._numbers[np.repeat(self._captions.starts[rows], lengths) + place]
        return {"tokens": tokens, "lengths": self.lengths[rows]}
